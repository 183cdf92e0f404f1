package fault

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestMutations: each way of making the product wrong is noticed. With few seeds
// (FAULT_SEEDS) it is enough that most are: the rest takes longer to show. FAULT_MUTATION
// names some to try alone.
func TestMutations(t *testing.T) {
	t.Parallel()
	var table bytes.Buffer
	var missed []string
	only := os.Getenv("FAULT_MUTATION")
	most, enough := uint64(40), 30
	if env("FAULT_SEEDS", 0) >= 1000 || only != "" {
		most, enough = env("FAULT_MUTATION_SEEDS", 3000), len(Mutations())
	}
	tried := 0
	for _, m := range Mutations() {
		if only != "" && !slices.Contains(strings.Split(only, ","), m.Name) {
			continue
		}
		tried++
		c := Catch(t, &m, most)
		if c.Report == nil {
			missed = append(missed, m.Name)
		}
		fmt.Fprintln(&table, c)
	}
	t.Log("\n" + table.String())
	if caught := tried - len(missed); caught < min(enough, tried) {
		t.Errorf("%d of %d noticed; not: %s", caught, tried, strings.Join(missed, ", "))
	}
}
