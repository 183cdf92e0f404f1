package loop_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/profile"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/wiring"
)

// Runtime 7.5: which failures go on to the next model and which end the run, a row each.
func TestFailover_7_5_AdvancesAndStops(t *testing.T) {
	t.Parallel()
	idle := func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		yield(model.Part{}, &model.Error{Class: model.Timeout, Message: "silent", Err: model.ErrIdle})
	}
	refuse := func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		yield(done("refusal"), nil)
	}
	for _, row := range []struct {
		name     string
		first    answerFunc
		advances bool
	}{
		{"auth", fail(model.Auth), true},
		{"auth_permanent", fail(model.AuthPermanent), true},
		{"rate limit", fail(model.RateLimit), true},
		{"overload", fail(model.Overloaded), true},
		{"timeout", fail(model.Timeout), true},
		{"idle timeout", idle, true},
		{"server error", fail(model.ServerError), true},
		{"billing", fail(model.Billing), true},
		{"model_not_found", fail(model.ModelNotFound), true},
		{"unknown with candidates left", fail(model.Unknown), true},
		{"context overflow", fail(model.ContextOverflow), false},
		{"a provider's ceiling for the size of requests", failing(model.Error{Class: model.ContextOverflow, Status: 413, Oversize: true}), true},
		{"format", fail(model.Format), false},
		{"refusal", refuse, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := newModels(t, "a/one", "b/two")
			m.on(t, "a/one", row.first)
			m.on(t, "b/two", say("hello"))
			c := w.connect()
			w.accept(c, "r1", "hi")
			w.process(nil, chained(m)).serve()
			st := w.status("r1")
			if row.advances {
				if st.Outcome.Kind != run.OK || st.Outcome.Model != "two" || m.asked() != "a/one, b/two" {
					t.Fatalf("%+v, asked %s", st.Outcome, m.asked())
				}
				if n := len(c.all(event("agent", "lifecycle", "fallback_step"))); n != 1 {
					t.Errorf("%d steps were told", n)
				}
				return
			}
			if st.Outcome.Kind != run.Failed || m.asked() != "a/one" {
				t.Fatalf("%+v, asked %s", st.Outcome, m.asked())
			}
		})
	}
}

func TestFailover_7_5_LastUnknownStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newModels(t, "a/one", "b/two")
	m.on(t, "a/one", fail(model.Overloaded))
	m.on(t, "b/two", fail(model.Unknown))
	w.accept(w.connect(), "r1", "hi")
	w.process(nil, chained(m)).serve()
	if st := w.status("r1"); st.Outcome.Kind != run.Failed || st.Outcome.ErrorKind != "unknown" || st.Outcome.Model != "two" {
		t.Errorf("%+v", st.Outcome)
	}
}

// Five idle timeouts in a row end the run: no other model is asked.
func TestFailover_7_5_IdleBreakerStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newModels(t, "a/one", "b/two")
	m.on(t, "a/one", func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		yield(model.Part{}, &model.Error{Class: model.Timeout, Message: "silent", Err: model.ErrIdle})
	})
	m.on(t, "b/two", say("hello"))
	w.accept(w.connect(), "r1", "hi")
	p := w.process(nil, chained(m), func(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) { rc.Retry.MaxRetries = 0 })
	w.until(p.start())
	st := w.status("r1")
	if st.Outcome.Kind != run.Failed || st.Outcome.ErrorKind != "idle_timeout_circuit_breaker" || strings.Count(m.asked(), "a/one") != 5 || strings.Contains(m.asked(), "b/two") {
		t.Errorf("%+v, asked %s", st.Outcome, m.asked())
	}
}

// Runtime 7.2: credentials of a provider come before other models, one more for a rate
// limit or an overload, all of them for others.
func TestFailover_7_2_RotationBeforeFallback(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		class model.Class
		want  string
	}{
		{model.RateLimit, "a/one p, a/one q, b/two"},
		{model.Overloaded, "a/one p, a/one q, b/two"},
		{model.Auth, "a/one p, a/one q, a/one r, b/two"},
		{model.Billing, "a/one p, a/one q, a/one r, b/two"},
		{model.ModelNotFound, "a/one p, b/two"},
	} {
		t.Run(string(row.class), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := newModels(t, "a/one p q r", "b/two")
			for _, p := range []string{"p", "q", "r"} {
				m.on(t, "a/one "+p, fail(row.class))
			}
			m.on(t, "b/two", say("hello"))
			w.accept(w.connect(), "r1", "hi")
			w.process(nil, chained(m)).serve()
			if m.asked() != row.want {
				t.Errorf("asked %s, want %s", m.asked(), row.want)
			}
		})
	}
}

// Runtime 7.4: what one run met keeps the next one from asking; when the window is over
// it is asked again, and a success forgets it.
func TestFailover_7_4_CooldownsAreShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newModels(t, "a/one", "b/two")
	m.on(t, "a/one", fail(model.Overloaded), say("again"))
	m.on(t, "b/two", say("hello"))
	c := w.connect()
	book := &profile.Book{Store: w.store, Clock: w.clock}
	for i, want := range []string{"a/one, b/two", "a/one, b/two, b/two"} {
		w.accept(c, fmt.Sprintf("r%d", i), "hi")
		// Long before its end a window is not probed: make it a long one.
		if i == 1 {
			must(t, lengthen(t, book))
		}
		w.process(nil, chained(m)).serve()
		if m.asked() != want {
			t.Fatalf("run %d: asked %s, want %s", i, m.asked(), want)
		}
	}
	w.clock.Advance(10 * time.Minute)
	w.accept(c, "r3", "hi")
	w.process(nil, chained(m)).serve()
	if !strings.HasSuffix(m.asked(), "b/two, a/one") {
		t.Errorf("behind the window: %s", m.asked())
	}
	all, err := book.Load(t.Context(), session.DefaultTenant)
	if u := all["a:default"]; err != nil || u.Failing() {
		t.Errorf("%+v, %v", all, err)
	}
}

// The run goes on with the model that it had come to, whoever dies behind the step.
func TestFailover_SurvivesACrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newModels(t, "a/one", "b/two")
	m.on(t, "a/one", fail(model.Billing))
	c := w.connect()
	w.accept(c, "r1", "hi")
	dying := w.process(nil, chained(m))
	m.on(t, "b/two", func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		yield(model.Part{Text: "half"}, nil)
		dying.kill()
		yield(model.Part{}, &model.Error{Class: model.Aborted, Message: "the machine is gone"})
	}, say("hello"))
	if dying.start().wait() == nil {
		t.Fatal("a dead process acknowledged")
	}
	w.clock.Advance(lost)
	w.box.back(letter{lane: "main", body: wakeBody, due: w.clock.Now()})
	w.process(nil, chained(m)).serve()
	if m.asked() != "a/one, b/two, b/two" {
		t.Errorf("asked %s", m.asked())
	}
	st := w.status("r1")
	if st.Outcome.Kind != run.OK || st.Outcome.Model != "two" || !strings.Contains(st.Outcome.Payloads[0].Text, "Model Fallback") {
		t.Errorf("%+v", st.Outcome)
	}
	if rows := w.rows(); len(rows) != 2 || rows[0].Text() != "hi" || rows[1].Text() != "hello" {
		t.Errorf("rows %+v", rows)
	}
}

// Runtime 7.5: the winner is the turn's alone; people are told once.
func TestFailover_7_5_NoticeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newModels(t, "a/one", "b/two")
	m.on(t, "a/one", fail(model.ModelNotFound))
	m.on(t, "b/two", say("hello"))
	c := w.connect()
	for i, want := range []string{"↪️ Model Fallback: b/two (selected a/one; model not found)\n\nhello", "hello"} {
		id := fmt.Sprintf("r%d", i)
		w.accept(c, id, "hi")
		w.process(nil, chained(m)).serve()
		st := w.status(id)
		if st.Outcome.Text != want {
			t.Errorf("run %d says %q", i, st.Outcome.Text)
		}
		if e, err := session.LoadEntry(t.Context(), w.store, ref); err != nil || e.ModelOverride != "" || e.Fallback == nil || e.Fallback.Run != w.status("r0").Ref.Run {
			t.Errorf("run %d leaves %+v, %v", i, e, err)
		}
	}
	m.on(t, "a/one", say("back"))
	w.accept(c, "r2", "hi")
	w.process(nil, chained(m)).serve()
	if e, err := session.LoadEntry(t.Context(), w.store, ref); err != nil || e.Fallback != nil || w.status("r2").Outcome.Text != "back" {
		t.Errorf("%+v, %v", e, err)
	}
}

// What was shown of a message that comes anew from another model is replaced, not
// doubled.
func TestFailover_ShownTextIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newModels(t, "a/one", "b/two")
	m.on(t, "a/one", func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		yield(model.Part{Text: "The answer is fo"}, nil)
		yield(model.Part{}, &model.Error{Class: model.Timeout, Status: 504, Message: "cut"})
	})
	m.on(t, "b/two", say("The answer is forty-two."))
	c := w.connect()
	w.accept(c, "r1", "hi")
	w.process(nil, chained(m)).serve()
	last := ""
	for _, f := range c.all(event("agent", "assistant", "")) {
		last = str(f, "payload.data.text")
	}
	if last != "The answer is forty-two." {
		t.Errorf("the screen says %q", last)
	}
	if rows := w.rows(); len(rows) != 2 || rows[1].Text() != "The answer is forty-two." {
		t.Errorf("rows %+v", rows)
	}
}

// Runtime 7.3: a session keeps to the credential that answered; a reset clears that.
func TestFailover_7_3_StickyPerSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newModels(t, "a/one p q")
	m.on(t, "a/one p", fail(model.Auth), say("p again"))
	m.on(t, "a/one q", say("q"))
	c := w.connect()
	for i := range 2 {
		w.accept(c, fmt.Sprintf("r%d", i), "hi")
		w.process(nil, chained(m)).serve()
		w.clock.Advance(time.Hour)
	}
	if m.asked() != "a/one p, a/one q, a/one q" {
		t.Fatalf("asked %s", m.asked())
	}
	w.accept(c, "r3", "hi", func(st *run.Status) { st.Input.SessionID = "another-transcript" })
	w.process(nil, chained(m)).serve()
	if !strings.HasSuffix(m.asked(), "a/one q, a/one p") {
		t.Errorf("behind a reset: %s", m.asked())
	}
	_, err := session.UpdateEntry(t.Context(), w.store, ref, func(e *session.Entry) error {
		e.AuthProfile, e.AuthProfileSource = "q", "user"
		return nil
	})
	must(t, err)
	w.accept(c, "r4", "hi", func(st *run.Status) { st.Input.SessionID = "one-more" })
	w.process(nil, chained(m)).serve()
	if !strings.HasSuffix(m.asked(), "a/one p, a/one q") {
		t.Errorf("a user's pin behind a reset: %s", m.asked())
	}
}
