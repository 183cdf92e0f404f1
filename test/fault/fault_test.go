package fault

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"laneway/shared/table"
	"laneway/shared/table/bolt"
)

// env is a number that the environment may set.
func env(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// TestSeedsOverBolt: likewise over the tables of one machine instead of a map.
func TestSeedsOverBolt(t *testing.T) {
	t.Parallel()
	for seed := range max(env("FAULT_SEEDS", 0)/50, 16) {
		path := filepath.Join(t.TempDir(), "tables.db")
		r := Run(t, Config{Seed: seed, Record: true, Open: func() (table.Store, func() error, error) {
			s, err := bolt.Open(bolt.Config{Path: path, NoSync: true})
			if err != nil {
				return nil, nil, err
			}
			return s, s.Close, nil
		}})
		if len(r.Violations) > 0 {
			var b bytes.Buffer
			r.Print(&b)
			t.Fatal(b.String())
		}
	}
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
