package fault

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestReplay: a seed is the same simulation each time. Go's own choice between two
// ready cases of a select is the only thing that may differ, so nearly all are.
func TestReplay(t *testing.T) {
	t.Parallel()
	const seeds = 48
	same, line := 0, ""
	for seed := range uint64(seeds) {
		a, b := Run(t, Config{Seed: seed, Record: true}), Run(t, Config{Seed: seed, Record: true})
		if a.Digest == b.Digest {
			same++
			continue
		}
		for i := range min(len(a.Timeline), len(b.Timeline)) {
			if a.Timeline[i] != b.Timeline[i] {
				line = a.Timeline[i] + "\n" + b.Timeline[i]
				break
			}
		}
	}
	t.Logf("%d of %d seeds were the same twice", same, seeds)
	if same < seeds*9/10 {
		t.Errorf("only %d of %d seeds were the same twice; the last one differs from here on:\n%s", same, seeds, line)
	}
}

// TestReport: what is printed of a failing seed has its timeline, the rule, and the
// command that runs it again, and that command's seed fails again.
func TestReport(t *testing.T) {
	t.Parallel()
	m := MutationOf("accept-without-absent")
	c := Catch(t, m, 60)
	if c.Report == nil {
		t.Fatal("not noticed")
	}
	var b bytes.Buffer
	c.Report.Print(&b)
	for _, want := range []string{"violated accepted: ", "accept r", "again: go run ./cmd/laneway fault --seed ", "--mutation " + m.Name} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	again := Run(t, Config{Seed: c.Report.Seed, Profile: c.Report.Profile, Mutation: m})
	if len(again.Violations) == 0 || again.Violations[0].Rule != "accepted" {
		t.Errorf("the same seed again: %v", again.Violations)
	}
}

// TestEveryKillPointIsMet: the kit kills at each point that it names.
func TestEveryKillPointIsMet(t *testing.T) {
	t.Parallel()
	n := env("FAULT_SEEDS", 0)
	if n < 1000 {
		t.Skip("not run: each kill point in fewer than 1000 seeds (FAULT_SEEDS)")
	}
	left := Points()
	for _, profile := range []string{"", "steer"} { // what steers commits more often
		for first := uint64(0); first < n && len(left) > 0; first += 250 {
			sum := Many(t, Batch{First: first, Count: 250, Profile: profile})
			left = slices.DeleteFunc(left, func(p string) bool { return sum.Points[p] > 0 })
		}
	}
	if len(left) > 0 {
		t.Errorf("nobody died %v in %d seeds", left, n)
	}
}
