package model

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// How much is searched: tiny with every test run, small by make model-check, full by
// make model-check MODEL=full.
var (
	size   = flag.String("model", "tiny", "tiny, small or full")
	update = flag.Bool("update", false, "write testdata/variants.txt anew")
)

// most is how many states a search may have. One that has more proves nothing and
// fails: make its scenario smaller. So many take 2 GB.
const most = 7_500_000

func wanted(t *testing.T, sc *Scenario) bool {
	t.Helper()
	switch *size {
	case "full":
		return true
	case "small":
		return sc.Size != Full
	case "tiny":
		return sc.Size == Tiny
	}
	t.Fatalf("-model=%s: want tiny, small or full", *size)
	return false
}

// TestRulesHold searches every scenario under the rules as they are.
func TestRulesHold(t *testing.T) {
	for _, sc := range Scenarios() {
		if !wanted(t, &sc) {
			continue
		}
		t.Run(sc.Name, func(t *testing.T) {
			res := Search(sc, Variant{}, most)
			t.Logf("%d states, %d edges, at most %d steps deep", res.States, res.Edges, res.Depth)
			if res.Cut {
				t.Fatalf("more than %d states: nothing is proved", most)
			}
			if res.States < 50 {
				t.Fatal("hardly anything was searched")
			}
			if res.Broken != "" {
				t.Fatalf("%s after %d steps\n%s\nagain: go run ./test/model/cmd -scenario %s -trace", res.Broken, res.Steps, res.Trace(), sc.Name)
			}
		})
	}
}

// line is that of a variant in testdata/variants.txt.
func line(v *Variant, res *Result) string {
	return fmt.Sprintf("%-8s %-64s %-11s %3d steps: %s", v.Rule, v.Text, v.In, res.Steps, res.Broken)
}

// TestWrongRulesAreCaught searches each variant in the scenario that breaks it.
func TestWrongRulesAreCaught(t *testing.T) {
	if *size == "tiny" && !*update {
		t.Skip("make model-check searches the variants")
	}
	path := filepath.Join("testdata", "variants.txt")
	var lines []string
	for _, v := range Variants() {
		sc, ok := Find(v.In)
		if !ok {
			t.Fatalf("%s: no scenario %q", v.Name, v.In)
		}
		res := Search(sc, v, most)
		lines = append(lines, line(&v, &res))
		t.Log(lines[len(lines)-1])
		switch {
		case res.Cut:
			t.Errorf("%s (%s): more than %d states", v.Name, v.Rule, most)
		case res.Broken == "":
			t.Errorf("%s (%s): nobody notices that %s", v.Name, v.Rule, v.Text)
		}
	}
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("variants are caught otherwise than %s says; read what changed, then: go test ./test/model -run WrongRules -update\ngot:\n%s", path, got)
	}
}

// TestEachRuleHasAVariant: a rule of which no clause is tried is not covered.
func TestEachRuleHasAVariant(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	names := map[string]bool{}
	for _, v := range Variants() {
		tried[v.Rule] = true
		if names[v.Rule+v.Name] {
			t.Errorf("%s is there twice", v.Name)
		}
		names[v.Rule+v.Name] = true
		if v.Flaws == 0 {
			t.Errorf("%s takes nothing away", v.Name)
		}
	}
	for rule := range strings.FieldsSeq("A1 A2 A3 A4 Wake-up C1 C2 C3 C4 C5 C6 C7 L1 L2 L3 L4 L5 R1 R2 R3 W1 W2 K1 O1") {
		if !tried[rule] {
			t.Errorf("no variant of %s", rule)
		}
	}
	var all Flaw
	for _, v := range Variants() {
		all |= v.Flaws
	}
	for f := Flaw(1); f != 0 && f <= StopReadBefore; f <<= 1 {
		if all&f == 0 {
			t.Errorf("flaw %b is in no variant", f)
		}
	}
}

// TestSearchIsDeterministic: a trace is worth something only if it comes again.
func TestSearchIsDeterministic(t *testing.T) {
	t.Parallel()
	sc, _ := Find("nested")
	for _, v := range []Variant{{}, {Flaws: NestedFrees}} {
		a, b := Search(sc, v, most), Search(sc, v, most)
		if a.States != b.States || a.Edges != b.Edges || a.Trace() != b.Trace() {
			t.Errorf("two searches differ: %d and %d states", a.States, b.States)
		}
	}
}

// TestTransitionsAreTaken: a transition that no search takes models nothing.
func TestTransitionsAreTaken(t *testing.T) {
	if *size == "tiny" {
		t.Skip("make model-check takes them")
	}
	taken := map[op]bool{}
	for _, sc := range Scenarios() {
		m := newMachine(sc, Variant{})
		seen := newStore()
		start := m.start()
		seen.put(&start)
		for i := range 60_000 {
			if i >= seen.n {
				break
			}
			s := *seen.at(uint32(i))
			for _, e := range m.next(&s) {
				taken[e.op] = true
				seen.put(&e.to)
			}
		}
	}
	for o := range ops {
		if ops[o].fn != "" && !taken[op(o)] {
			t.Errorf("never taken: %s", ops[o].text)
		}
	}
}
