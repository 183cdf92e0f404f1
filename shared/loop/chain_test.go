package loop_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/profile"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/shared/wiring"
)

// models is a chain of fake models whose calls are written down in order.
type models struct {
	mu    sync.Mutex
	calls []string // provider/id, or that and the credential
	all   []model.Candidate
	fakes map[string]*fakeModel
}

// newModels makes models of "provider/id", or of that and the ids of credentials.
func newModels(t *testing.T, specs ...string) *models {
	t.Helper()
	m := &models{fakes: map[string]*fakeModel{}}
	for _, spec := range specs {
		words := strings.Fields(spec)
		provider, id, _ := strings.Cut(words[0], "/")
		c := model.Candidate{Selected: model.Selected{Name: provider, Model: id, Endpoint: model.Local}}
		for _, p := range words[1:] {
			c.Profiles = append(c.Profiles, model.Credential{ID: p, Provider: provider, Type: "api-key", Present: true})
		}
		c.Ordered = true
		c.Open = func(p string) (model.Provider, error) { return m.fake(t, words[0]+" "+p), nil }
		c.Provider = m.fake(t, words[0])
		m.all = append(m.all, c)
	}
	return m
}

func (m *models) fake(t *testing.T, name string) *fakeModel {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.fakes[name]; f != nil {
		return f
	}
	f := newFakeModel()
	t.Cleanup(f.release)
	f.on(say("answer of " + name))
	m.fakes[name] = f
	return f
}

// on scripts the model of a name; what it is asked is written down.
func (m *models) on(t *testing.T, name string, script ...answerFunc) {
	t.Helper()
	f, n := m.fake(t, name), 0
	f.by(func(model.Request) answerFunc {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.calls = append(m.calls, name)
		n++
		return script[min(n, len(script))-1]
	})
}

func (m *models) asked() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.calls, ", ")
}

func (m *models) Candidates(context.Context, run.Input, session.Entry, string) ([]model.Candidate, error) {
	return slices.Clone(m.all), nil
}

// chained is an option: the run's models are these, and none is asked twice.
func chained(m *models) func(*process, *wiring.Settings, *wiring.RunnerConfig) {
	return func(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) {
		rc.Chains = m
		rc.Retry.MaxRetries = -1
	}
}

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

// lengthen makes the third failure of it: five minutes.
func lengthen(t *testing.T, b *profile.Book) error {
	t.Helper()
	for range 3 {
		all, err := b.Load(t.Context(), session.DefaultTenant)
		if err != nil {
			return err
		}
		u := all["a:default"]
		if w := u.For("one", b.Clock.Now()); w.Active(b.Clock.Now()) {
			b = &profile.Book{Store: b.Store, Clock: clockAt(w.Until)}
		}
		if _, err := b.Failed(t.Context(), session.DefaultTenant, "a:default", &model.Error{Class: model.Overloaded, Status: 529}, "one"); err != nil {
			return err
		}
	}
	return nil
}

type clockAt time.Time

func (c clockAt) Now() time.Time                     { return time.Time(c) }
func (clockAt) After(time.Duration) <-chan time.Time { return nil }

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

// Loop 3.5, runtime 7.2: an answer that the output limit cut is continued; the user's
// message is not said again, and the parts are one answer.
func TestContinuation_7_2_OutputLimit(t *testing.T) {
	t.Parallel()
	limit := func(text string) answerFunc {
		return func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
			yield(model.Part{Text: text}, nil)
			yield(done("length"), nil)
		}
	}
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("crash=%v", crash), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.model.on(limit("One, "), limit("two, "), say("three."))
			c := w.connect()
			w.accept(c, "r1", "count")
			n := 0
			p := w.process(onWrite(func(_ int, ops []table.Op) faulty.Fault {
				if crash && !isTerminal(ops) && len(ops) > 2 {
					if n++; n == 1 {
						return faulty.DieAfter
					}
				}
				return faulty.None
			}))
			if i := p.start(); crash {
				if i.wait() == nil {
					t.Fatal("a dead process acknowledged")
				}
				w.clock.Advance(lost)
				w.box.back(letter{lane: "main", body: wakeBody, due: w.clock.Now()})
				p = w.process(nil)
				w.until(p.start())
			} else {
				w.until(i)
			}
			st := w.status("r1")
			if st.Outcome.Kind != run.OK || st.Outcome.Text != "One, two, three." {
				t.Fatalf("%+v", st.Outcome)
			}
			last := ""
			for _, f := range c.all(event("agent", "assistant", "")) {
				last = str(f, "payload.data.text")
			}
			if last != "One, two, three." {
				t.Errorf("the screen says %q", last)
			}
			calls := w.model.calls()
			final := calls[len(calls)-1].Messages
			users := 0
			for _, m := range final {
				for _, b := range m.Content {
					if m.Role == model.User && b.Text == "count" {
						users++
					}
				}
			}
			if end := final[len(final)-1]; users != 1 || end.Role != model.User || !strings.Contains(end.Content[0].Text, "Continue exactly where it stops") {
				t.Errorf("the last request: %+v", final)
			}
			for _, e := range w.rows() {
				if strings.Contains(e.Text(), "[System:") {
					t.Errorf("the instruction is kept: %q", e.Text())
				}
			}
		})
	}
}

// A call that the limit may have cut is never made; the model is told.
func TestContinuation_7_2_PartialArgumentsAreNeverExecuted(t *testing.T) {
	t.Parallel()
	act := newTool("act", 0)
	w := newWorld(t, act)
	w.model.on(func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		b := block("a", "act")
		b.Type = model.ToolCall
		yield(model.Part{ToolCall: &b}, nil)
		yield(done("length"), nil)
	}, say("never mind"))
	c := w.connect()
	w.accept(c, "r1", "go")
	w.until(w.process(nil).start())
	calls := w.model.calls()
	last := calls[len(calls)-1].Messages
	if st := w.status("r1"); st.Outcome.Text != "never mind" || st.Outcome.ToolCalls != 0 || !strings.Contains(last[len(last)-1].Content[0].Text, "the call was not made") {
		t.Errorf("%+v, %+v", st.Outcome, last)
	}
	if n := len(c.all(event("agent", "tool", "start"))); n != 0 {
		t.Errorf("%d calls were begun", n)
	}
}

// Status events carry what is retried and how often.
func TestRetry_7_2_StatusEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := 0
	w.model.by(func(model.Request) answerFunc {
		if n++; n < 3 {
			return fail(model.RateLimit)
		}
		return say("at last")
	})
	c := w.connect()
	w.accept(c, "r1", "hi")
	w.until(w.process(nil).start())
	var got []string
	for _, f := range c.all(event("agent", "run_status", "retrying")) {
		p, _ := f["payload"].(map[string]any)
		d, _ := p["data"].(map[string]any)
		got = append(got, fmt.Sprint(d["reason"], d["attempt"], d["maxAttempts"], d["delayMs"]))
	}
	if !slices.Equal(got, []string{"rate_limit2 10 1000", "rate_limit3 10 2000"}) {
		t.Errorf("%q", got)
	}
}

// Runtime 7.2: a wait that is longer than a minute is made where there is nobody else to
// ask, and not where there is.
func TestRetry_7_2_LongRetryAfter(t *testing.T) {
	t.Parallel()
	busy := func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		yield(model.Part{}, &model.Error{Class: model.RateLimit, Message: "busy", RetryAfter: 5 * time.Minute})
	}
	for _, row := range []struct {
		name, want string
		models     []string
		least      time.Duration
	}{
		{"without a fallback it is honoured in full", "a/one, a/one", []string{"a/one"}, 5 * time.Minute},
		{"with a fallback: straight to it", "a/one, b/two", []string{"a/one", "b/two"}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := newModels(t, row.models...)
			m.on(t, "a/one", busy, say("at last"))
			m.on(t, "b/two", say("hello"))
			w.accept(w.connect(), "r1", "hi")
			began := w.clock.Now()
			w.process(nil, chained(m), func(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) { rc.Retry.MaxRetries = 0 }).serve()
			took := w.clock.Now().Sub(began)
			if m.asked() != row.want || took < row.least || row.least == 0 && took > 30*time.Second {
				t.Errorf("asked %s in %s", m.asked(), took)
			}
		})
	}
}

// TestF25_AStalledModelIsNoSuccess: a scheduled run whose model stalls beyond the limit
// has failed, with that reason, and what it had said is not its result.
func TestF25_AStalledModelIsNoSuccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newModels(t, "a/one")
	m.all[0].Endpoint = model.Cloud
	m.on(t, "a/one", hold(nil, "half an answer", ""))
	c := w.connect()
	w.accept(c, "r1", "go", func(st *run.Status) { st.Lane, st.Input.TimeoutMs = "cron", 600_000 })
	began := w.clock.Now()
	w.until(w.process(nil, chained(m)).start())
	st := w.status("r1")
	if st.Outcome.Kind != run.Failed || st.Outcome.ErrorKind != "idle_timeout" || strings.Contains(st.Outcome.Text, "half") || st.Snapshot().Status == "ok" {
		t.Errorf("%+v", st.Outcome)
	}
	if took := w.clock.Now().Sub(began); took < 60*time.Second || took > 70*time.Second {
		t.Errorf("it was noticed after %s", took) // runtime 5.2 row 3
	}
	for _, p := range st.Outcome.Payloads {
		if !p.IsError {
			t.Errorf("delivered: %+v", p)
		}
	}
}

// A scheduled run in such a case with somebody else to ask has that one's answer.
func TestF25_AStalledModelIsReplacedByAFallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newModels(t, "a/one", "b/two")
	m.all[0].Endpoint = model.Cloud
	m.on(t, "a/one", hold(nil, "half an answer", ""))
	m.on(t, "b/two", say("whole"))
	c := w.connect()
	w.accept(c, "r1", "go", func(st *run.Status) { st.Lane, st.Input.TimeoutMs = "cron", 600_000 })
	w.until(w.process(nil, chained(m)).start())
	if st := w.status("r1"); st.Outcome.Kind != run.OK || !strings.HasSuffix(st.Outcome.Text, "whole") || strings.Contains(st.Outcome.Text, "half") {
		t.Errorf("%+v", st.Outcome)
	}
	shown := ""
	for _, f := range c.all(event("agent", "assistant", "")) {
		shown = str(f, "payload.data.text")
	}
	if shown != "whole" {
		t.Errorf("the screen says %q", shown)
	}
}

// TestF14_AFallbackBringsNoEarlierAnswerBack: a run that was stopped between two models
// ends aborted, and nothing that was said before is said again.
func TestF14_AFallbackBringsNoEarlierAnswerBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := newModels(t, "a/one", "b/two")
	m.on(t, "a/one", say("the earlier answer"), fail(model.Billing))
	gate := make(chan struct{})
	m.on(t, "b/two", hold(gate, "", "never"))
	c := w.connect()
	w.accept(c, "r1", "first")
	w.process(nil, chained(m)).serve()
	w.accept(c, "r2", "second")
	p := w.process(nil, chained(m))
	i := p.start()
	<-m.fakes["b/two"].asked
	w.stop("r2")
	w.until(i)
	st := w.status("r2")
	if st.Outcome.Kind != run.Aborted || st.Outcome.Text != "" {
		t.Errorf("%+v", st.Outcome)
	}
	for _, f := range c.all(event("agent", "assistant", "")) {
		if str(f, "payload.runId") == "r2" && str(f, "payload.data.text") != "" {
			t.Errorf("said: %v", f)
		}
	}
}
