package loop_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/profile"
)

// TestFailover_7_4_ProbingRows: whom a run asks again whose credential is left alone.
func TestFailover_7_4_ProbingRows(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		models []string
		fails  map[string]model.Class
		first  string        // whom the first run asks
		after  time.Duration // until the second
		second string
	}{
		{
			"one transient probe per provider per run",
			[]string{"a/one", "a/two", "a/three", "b/four"},
			map[string]model.Class{"a/one": model.Overloaded, "a/two": model.Overloaded, "a/three": model.Overloaded},
			"a/one, a/two, b/four", time.Second, "b/four",
		},
		{
			"30 s between probes per provider",
			[]string{"a/one", "b/four"},
			map[string]model.Class{"a/one": model.Billing},
			"a/one, b/four", 31 * time.Second, "a/one, b/four",
		},
		{
			"billing probes only for the primary",
			[]string{"x/gone", "a/two", "b/four"},
			map[string]model.Class{"x/gone": model.ModelNotFound, "a/two": model.Billing},
			"x/gone, a/two, b/four", 31 * time.Second, "x/gone, b/four",
		},
		{
			"auth failures skip the provider",
			[]string{"a/one", "a/two", "b/four"},
			map[string]model.Class{"a/one": model.Auth},
			"a/one, b/four", time.Second, "b/four",
		},
		{
			"rate limits are of one model: its siblings are usable",
			[]string{"a/one", "a/two", "b/four"},
			map[string]model.Class{"a/one": model.RateLimit},
			"a/one, a/two", time.Second, "a/one, a/two",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := newModels(t, row.models...)
			for _, name := range row.models {
				if class, broken := row.fails[name]; broken {
					m.on(t, name, fail(class))
				} else {
					m.on(t, name, say("answer"))
				}
			}
			c := w.connect()
			w.accept(c, "r1", "hi")
			w.process(nil, chained(m)).serve()
			if m.asked() != row.first {
				t.Fatalf("the first run asked %s, want %s", m.asked(), row.first)
			}
			w.clock.Advance(row.after)
			w.accept(c, "r2", "hi")
			w.process(nil, chained(m)).serve()
			if got := strings.TrimPrefix(m.asked(), row.first+", "); got != row.second {
				t.Errorf("the second run asked %s, want %s", got, row.second)
			}
		})
	}
}

// TestFailover_7_4_ProbedFromTwoMinutesBefore the end of a window on.
func TestFailover_7_4_ProbedFromTwoMinutesBefore(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		left time.Duration
		want string
	}{
		{"2 min and a second", 2*time.Minute + time.Second, "b/two"},
		{"2 min", 2 * time.Minute, "a/one"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := newModels(t, "a/one", "b/two")
			m.on(t, "a/one", say("one"))
			m.on(t, "b/two", say("two"))
			book := &profile.Book{Store: w.store, Clock: w.clock}
			must(t, lengthen(t, book))
			all, err := book.Load(t.Context(), ref.Tenant)
			must(t, err)
			u := all["a:default"]
			until := time.UnixMilli(u.CooldownUntil)
			w.clock.Advance(until.Add(-row.left).Sub(w.clock.Now()))
			w.accept(w.connect(), "r1", "hi")
			w.process(nil, chained(m)).serve()
			if m.asked() != row.want {
				t.Errorf("asked %s, want %s", m.asked(), row.want)
			}
		})
	}
}

// One probe per provider per run holds also where the 30 s between two are over.
func TestFailover_7_4_OneProbePerRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newModels(t, "a/one", "a/two", "b/three")
	m.on(t, "a/one", func(ctx context.Context, r model.Request, yield func(model.Part, error) bool) {
		w.clock.Advance(31 * time.Second)
		fail(model.Overloaded)(ctx, r, yield)
	})
	m.on(t, "a/two", say("two"))
	m.on(t, "b/three", say("three"))
	book := &profile.Book{Store: w.store, Clock: w.clock}
	must(t, lengthen(t, book))
	all, err := book.Load(t.Context(), ref.Tenant)
	must(t, err)
	u := all["a:default"]
	w.clock.Advance(time.UnixMilli(u.CooldownUntil).Add(-100 * time.Second).Sub(w.clock.Now()))
	w.accept(w.connect(), "r1", "hi")
	w.process(nil, chained(m)).serve()
	if m.asked() != "a/one, b/three" {
		t.Errorf("asked %s", m.asked())
	}
}
