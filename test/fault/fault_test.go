package fault

import (
	"bytes"
	"os"
	"strconv"
	"testing"
)

// env is a number that the environment may set.
func env(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// TestSeeds: no seed breaks a rule. FAULT_SEEDS says how many are run.
func TestSeeds(t *testing.T) {
	t.Parallel()
	first, n := env("FAULT_SEED", 0), env("FAULT_SEEDS", 60)
	sum := Many(t, Batch{First: first, Count: n})
	var b bytes.Buffer
	sum.Print(&b)
	if len(sum.Failed) > 0 {
		t.Errorf("%s", b.String())
		return
	}
	t.Log(b.String())
}
