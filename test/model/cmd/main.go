// Command cmd searches the model by hand: one scenario or all of them, under the
// rules as they are or under a variant, with the trace of what is broken.
//
//	go run ./test/model/cmd -scenario abort
//	go run ./test/model/cmd -scenario abort -variant LiveFirst -trace
//	go run ./test/model/cmd -variants
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"laneway/test/model"
)

func main() {
	scenario := flag.String("scenario", "", "name of a scenario; empty: all of them")
	variant := flag.String("variant", "", "name of a variant; empty: the rules as they are")
	trace := flag.Bool("trace", false, "print the way to what is broken")
	variants := flag.Bool("variants", false, "search each variant in the scenario that breaks it")
	limit := flag.Int("limit", 20_000_000, "states to visit in one search")
	flag.Parse()
	if err := run(*scenario, *variant, *trace, *variants, *limit); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(scenario, variant string, trace, variants bool, limit int) error {
	if variants {
		for _, v := range model.Variants() {
			if variant != "" && v.Name != variant {
				continue
			}
			sc, ok := model.Find(v.In)
			if !ok {
				return fmt.Errorf("no scenario %q", v.In)
			}
			if scenario != "" {
				if sc, ok = model.Find(scenario); !ok {
					return fmt.Errorf("no scenario %q", scenario)
				}
			}
			search(sc, v, trace, limit)
		}
		return nil
	}
	v := model.Variant{}
	for _, w := range model.Variants() {
		if variant != "" && w.Name == variant {
			v = w
		}
	}
	if v.Name != variant {
		return fmt.Errorf("no variant %q", variant)
	}
	found := false
	for _, sc := range model.Scenarios() {
		if scenario == "" || sc.Name == scenario {
			found = true
			search(sc, v, trace, limit)
		}
	}
	if !found {
		return fmt.Errorf("no scenario %q", scenario)
	}
	return nil
}

func search(sc model.Scenario, v model.Variant, trace bool, limit int) {
	began := time.Now()
	res := model.Search(sc, v, limit)
	verdict := "ok"
	switch {
	case res.Broken != "":
		verdict = fmt.Sprintf("%s, after %d steps", res.Broken, res.Steps)
	case res.Cut:
		verdict = "cut off"
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	fmt.Printf("%-8s %-28s %-11s %9d states %9d edges %5.1fs %5d MB  %s\n", v.Rule, v.Name, sc.Name, res.States, res.Edges,
		time.Since(began).Seconds(), mem.HeapSys>>20, verdict)
	if trace {
		fmt.Print(res.Trace())
	}
}
