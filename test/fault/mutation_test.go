package fault

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestMutations: each way of making the product wrong is noticed. FAULT_MUTATION names
// one to try alone.
func TestMutations(t *testing.T) {
	t.Parallel()
	var table bytes.Buffer
	var missed []string
	only := os.Getenv("FAULT_MUTATION")
	for _, m := range Mutations() {
		if only != "" && !slices.Contains(strings.Split(only, ","), m.Name) {
			continue
		}
		c := Catch(t, &m, env("FAULT_MUTATION_SEEDS", 1500))
		if c.Report == nil {
			missed = append(missed, m.Name)
		}
		fmt.Fprintln(&table, c)
	}
	t.Log("\n" + table.String())
	if len(missed) > 0 {
		t.Errorf("not noticed: %s", strings.Join(missed, ", "))
	}
	if n := len(Mutations()); n < 20 {
		t.Errorf("only %d mutations", n)
	}
}
