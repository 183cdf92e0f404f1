package loop_test

import (
	"strings"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/wiring"
)

// TestFailover_7_5_FallbackSkip: a fallback whose credential was refused is passed by in
// that session for as long as is configured, beyond its cooldown of 30 s.
func TestFailover_7_5_FallbackSkip(t *testing.T) {
	t.Parallel()
	const both, direct = "a/one, b/two, c/three", "a/one, c/three"
	for _, row := range []struct {
		name  string
		ttl   time.Duration
		first model.Class // of the wanted model
		class model.Class // of the fallback
		after time.Duration
		other bool // another process, which remembers nothing
		want  string
	}{
		{"off", 0, model.ModelNotFound, model.Auth, 40 * time.Second, false, both},
		{"auth", time.Minute, model.ModelNotFound, model.Auth, 40 * time.Second, false, direct},
		{"over", time.Minute, model.ModelNotFound, model.Auth, 61 * time.Second, false, both},
		{"not for other failures", time.Minute, model.ModelNotFound, model.Overloaded, 40 * time.Second, false, both},
		{"in memory", time.Minute, model.ModelNotFound, model.Auth, 40 * time.Second, true, both},
		{"not for the wanted model", time.Minute, model.Auth, model.ModelNotFound, 40 * time.Second, false, both},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := newModels(t, "a/one", "b/two", "c/three")
			m.on(t, "a/one", fail(row.first))
			m.on(t, "b/two", fail(row.class))
			m.on(t, "c/three", say("three"))
			c := w.connect()
			skips := func(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) { rc.FallbackSkip = row.ttl }
			p := w.process(nil, chained(m), skips)
			w.accept(c, "r1", "hi")
			p.serve()
			if m.asked() != both {
				t.Fatalf("the first run asked %s", m.asked())
			}
			w.clock.Advance(row.after)
			if row.other {
				p = w.process(nil, chained(m), skips)
			}
			w.accept(c, "r2", "hi")
			p.serve()
			if got := strings.TrimPrefix(m.asked(), both+", "); got != row.want || w.status("r2").Outcome.Text == "" {
				t.Errorf("the second run asked %s, want %s", got, row.want)
			}
		})
	}
}

// With several credentials only the refused one is passed by.
func TestFailover_7_5_FallbackSkipIsOfOneCredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newModels(t, "a/one", "b/two p q")
	m.on(t, "a/one", fail(model.ModelNotFound))
	m.on(t, "b/two p", fail(model.Auth))
	m.on(t, "b/two q", say("q"))
	c := w.connect()
	p := w.process(nil, chained(m), func(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) { rc.FallbackSkip = time.Minute })
	for i, want := range []string{"a/one, b/two p, b/two q", "a/one, b/two q"} {
		before := m.asked()
		w.accept(c, "r"+string(rune('0'+i)), "hi", inTranscript("t"+string(rune('0'+i)))) // whose pin is none
		p.serve()
		if got := strings.TrimPrefix(strings.TrimPrefix(m.asked(), before), ", "); got != want {
			t.Errorf("run %d asked %s, want %s", i, got, want)
		}
		w.clock.Advance(40 * time.Second)
	}
}

// A fallback that is passed by is asked where somebody chooses it.
func TestFailover_7_5_FallbackSkipIsNotOfTheWantedModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newModels(t, "a/one", "b/two", "c/three")
	m.on(t, "a/one", fail(model.ModelNotFound))
	m.on(t, "b/two", fail(model.Auth), say("two"))
	m.on(t, "c/three", say("three"))
	c := w.connect()
	p := w.process(nil, chained(m), func(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) { rc.FallbackSkip = 10 * time.Minute })
	w.accept(c, "r1", "hi")
	p.serve()
	w.clock.Advance(40 * time.Second)
	m.all = append(m.all[1:2:2], m.all[0], m.all[2]) // the configuration wants it first now
	w.accept(c, "r2", "hi")
	p.serve()
	if got := strings.TrimPrefix(m.asked(), "a/one, b/two, c/three, "); got != "b/two" {
		t.Errorf("the second run asked %s", got)
	}
}

func inTranscript(id string) func(*run.Status) {
	return func(st *run.Status) { st.Input.SessionID = id }
}
