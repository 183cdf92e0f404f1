package faulty_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/shared/table/tabletest"
)

func key(sk string) table.Key { return table.Key{Table: table.Sessions, PK: "p", SK: sk} }

func put(sk string) table.Op {
	return table.Op{Kind: table.Put, Key: key(sk), Item: table.Attrs{"a": sk}, If: table.NotExists()}
}

// always places one fault on the call with a number.
func always(n int, f faulty.Fault) func(faulty.Call) faulty.Fault {
	return func(c faulty.Call) faulty.Fault {
		if c.N == n {
			return f
		}
		return faulty.None
	}
}

func TestFaultsOfAWrite(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		name    string
		fault   faulty.Fault
		want    error
		written bool
	}{
		{"conflict", faulty.Conflict, table.ErrConflict, false},
		{"throttle", faulty.Throttle, table.ErrThrottled, false},
		{"lost request", faulty.LostRequest, table.ErrUnknown, false},
		{"lost answer", faulty.LostAnswer, table.ErrUnknown, true},
		{"death before", faulty.DieBefore, table.ErrClosed, false},
		{"death after", faulty.DieAfter, table.ErrClosed, true},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			model := tabletest.NewModel()
			s := faulty.New(model, faulty.Config{At: always(1, r.fault)})
			if _, err := s.Write(t.Context(), put("a")); err != nil {
				t.Fatal(err)
			}
			_, err := s.Write(t.Context(), put("b"), put("c"))
			if !errors.Is(err, r.want) || !errors.Is(err, faulty.ErrInjected) {
				t.Errorf("got %v, want %v", err, r.want)
			}
			for _, sk := range []string{"b", "c"} {
				if _, err := model.Get(t.Context(), key(sk)); (err == nil) != r.written {
					t.Errorf("item %s: %v", sk, err)
				}
			}
			_, err = s.Get(t.Context(), key("a"))
			if dead := errors.Is(r.want, table.ErrClosed); errors.Is(err, table.ErrClosed) != dead {
				t.Errorf("next call: %v", err)
			}
			if s.Injected()[r.fault] != 1 || s.Calls() != 3 {
				t.Errorf("injected %v in %d calls", s.Injected(), s.Calls())
			}
		})
	}
}

func TestRepeatedWriteMeetsItself(t *testing.T) {
	t.Parallel()
	at := func(faulty.Call) faulty.Fault { return faulty.Repeated }
	s := faulty.New(tabletest.NewModel(), faulty.Config{At: at})
	_, err := s.Write(t.Context(), put("a"))
	if c, ok := table.Failed(err); !ok || !c.Ambiguous || c.Found.Attrs.Str("a") != "a" {
		t.Errorf("single: got %v", err)
	}
	if _, err := s.Write(t.Context(), put("b"), put("c")); err != nil {
		t.Errorf("transaction: got %v, but it has a token", err)
	}
}

func TestFaultsComeFromTheSeed(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) (string, map[faulty.Fault]int) {
		s := faulty.New(tabletest.NewModel(), faulty.Config{Seed: seed, Conflict: .1, Throttle: .1, LostRequest: .1, LostAnswer: .1, Repeated: .1, ReadThrottle: .2})
		var log strings.Builder
		for i := range 200 {
			_, err := s.Write(t.Context(), put(strconv.Itoa(i)))
			_, gerr := s.Get(t.Context(), key(strconv.Itoa(i)))
			fmt.Fprintln(&log, err, gerr)
		}
		return log.String(), s.Injected()
	}
	first, n := run(1)
	if again, _ := run(1); again != first {
		t.Error("one seed, two runs")
	}
	if other, _ := run(2); other == first {
		t.Error("two seeds, one run")
	}
	for _, f := range []faulty.Fault{faulty.Conflict, faulty.Throttle, faulty.LostRequest, faulty.LostAnswer, faulty.Repeated} {
		if n[f] < 5 {
			t.Errorf("fault %d came %d times in 200 writes", f, n[f])
		}
	}
}

func TestIndexLagsBehindAndCatchesUp(t *testing.T) {
	t.Parallel()
	s := faulty.New(tabletest.NewModel(), faulty.Config{IndexLag: 2})
	active := func(sk, at string) table.Op {
		return table.Op{Kind: table.Update, Key: key(sk), Set: []table.SetOp{{Path: table.P("activePk"), Value: "A"}, {Path: table.P("activeSk"), Value: at}}}
	}
	shows := func(want ...string) {
		t.Helper()
		var got []string
		q := table.IndexQuery{Table: table.Sessions, Index: table.IndexActive, PK: "A", Limit: 1}
		for {
			p, err := s.Index(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range p.Keys {
				got = append(got, k.SK+k.Key.SK)
			}
			if q.After = p.Next; p.Next == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	write := func(ops ...table.Op) {
		t.Helper()
		if _, err := s.Write(t.Context(), ops...); err != nil {
			t.Fatal(err)
		}
	}
	write(active("x", "1"))
	shows()
	write(active("y", "2"), active("z", "3"))
	shows()
	write(active("x", "4"))
	shows("1x")
	write(table.Op{Kind: table.Delete, Key: key("y")})
	shows("1x", "2y", "3z")
	write(table.Op{Kind: table.Put, Key: key("other")})
	shows("2y", "3z", "4x")
	s.CatchUp()
	shows("3z", "4x")
}

func TestShortPagesLoseNothing(t *testing.T) {
	t.Parallel()
	model := tabletest.NewModel()
	for i := range 10 {
		if _, err := model.Write(t.Context(), put(strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []faulty.Config{{PageItems: 3}, {PageBytes: 1}, {PageBytes: 25}} {
		s := faulty.New(model, c)
		q, pages := table.Query{Table: table.Sessions, PK: "p"}, 0
		var got strings.Builder
		for {
			p, err := s.Query(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			pages++
			for _, it := range p.Items {
				got.WriteString(it.Key.SK)
			}
			if q.After = p.Next; p.Next == "" {
				break
			}
		}
		if got.String() != "0123456789" || pages < 4 {
			t.Errorf("%+v: got %q in %d pages", c, got.String(), pages)
		}
	}
}

// The whole suite holds through a wrapper without faults.
func TestWrapperKeepsThePromises(t *testing.T) {
	t.Parallel()
	tabletest.Run(t, func(*testing.T) table.Store { return faulty.New(tabletest.NewModel(), faulty.Config{}) })
}
