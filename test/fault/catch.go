package fault

import (
	"fmt"
	"testing"
)

// Caught is what came of a mutation.
type Caught struct {
	*Mutation
	Report *Report // that noticed it; nil: none did
	Seeds  uint64  // that were run
}

// String is a line of the table.
func (c Caught) String() string {
	if c.Report == nil {
		return fmt.Sprintf("NOT CAUGHT %-40s %-8s %s", c.Name, c.Rule, c.Text)
	}
	v := c.Report.Violations[0]
	return fmt.Sprintf("caught     %-40s %-8s by %q in %s, seed %d (%d tried): %s", c.Name, c.Rule, v.Rule, c.Report.Profile, c.Report.Seed, c.Seeds, v.Text)
}

// Catch runs seeds of the profiles in which a mutation shows, at most so many of each,
// until one notices it.
func Catch(t *testing.T, m *Mutation, most uint64) Caught {
	t.Helper()
	c := Caught{Mutation: m, Seeds: 1}
	if sum := Many(t, Batch{First: m.Seen, Count: 1, Profile: m.Profiles[0], Mutation: m, Most: 1}); len(sum.Failed) > 0 {
		c.Report = sum.Failed[0]
		return c
	}
	for _, p := range m.Profiles {
		const step = 20
		for first := uint64(0); first < most; first += step {
			sum := Many(t, Batch{First: first, Count: step, Profile: p, Mutation: m, Most: 1})
			c.Seeds += sum.Seeds
			if len(sum.Failed) > 0 {
				c.Report = sum.Failed[0]
				return c
			}
		}
	}
	return c
}
