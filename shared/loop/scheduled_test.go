package loop_test

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"laneway/shared/loop"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/tool"
	"laneway/shared/wiring"
)

// slowStore is a store whose reads of transcripts take as long as wait does.
type slowStore struct {
	table.Store
	wait func(context.Context) error
}

func (s *slowStore) Query(ctx context.Context, q table.Query) (table.Page, error) {
	if strings.Contains(q.PK, "#T#") {
		if err := s.wait(ctx); err != nil {
			return table.Page{}, err
		}
	}
	return s.Store.Query(ctx, q)
}

// byCron makes a run one that a schedule started.
func byCron(timeoutMs int64) func(*run.Status) {
	return func(st *run.Status) { st.Lane, st.Method, st.Input.TimeoutMs = "cron", "cron", timeoutMs }
}

func byNobody(timeoutMs int64) func(*run.Status) {
	return func(st *run.Status) { st.Input.TimeoutMs = timeoutMs }
}

// for d, or until ctx ends.
func (w *world) takes(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-w.clock.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// armed waits until so many waits have begun since the clock counted before: it must not
// move away from a watchdog that is not on it yet.
func (w *world) armed(before, n int) {
	w.t.Helper()
	for end := time.Now().Add(within); w.clock.Armed() < before+n; {
		<-time.After(50 * time.Microsecond)
		if time.Now().After(end) {
			w.t.Fatalf("%d waits have begun, want %d", w.clock.Armed()-before, n)
		}
	}
}

// ends lets time go by in step with the holder, and then slowly until an invocation has
// ended: what is told at one moment must not find a clock that has run away.
func (w *world) ends(i *invocation, after time.Duration) {
	w.t.Helper()
	if after > 0 {
		w.pass(after, 1)
	}
	for end := time.Now().Add(within); len(i.err) == 0; {
		w.clock.Advance(100 * time.Millisecond)
		<-time.After(2 * time.Millisecond)
		if time.Now().After(end) {
			w.t.Fatal("the invocation does not end")
		}
	}
	must(w.t, i.wait())
}

const setupText = "cron: isolated agent setup timed out before runner start"

// TestRuntime54_SetupWatchdog: 60 s from when the runner holds the run; waiting in the
// lane is before that.
func TestRuntime54_SetupWatchdog(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(*run.Status)
		waits  time.Duration // in the lane
		loads  time.Duration
		want   time.Duration // until it is ended; 0: it is not
		armed  int           // waits: the holder's, the watchdog's, the read's
	}{
		{"60 s", byCron(3_600_000), 0, time.Hour, time.Minute, 3},
		{"paused while waiting for the lane", byCron(3_600_000), time.Hour, 50 * time.Second, 0, 3},
		{"whatever the run's own limit", byCron(-1), 0, time.Hour, time.Minute, 3},
		{"in time", byCron(3_600_000), 0, 58 * time.Second, 0, 3},
		{"not for runs that somebody waits for", byNobody(0), 0, 5 * time.Minute, 0, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.model.on(say("done"))
			c := w.connect()
			w.accept(c, "r0", "before")
			w.process(nil).serve() // there is a past to read
			w.accept(c, "r1", "go", row.change)
			w.clock.Advance(row.waits)
			fast := w.store
			w.store = &slowStore{fast, w.takes(row.loads)}
			p := w.process(nil)
			w.store = fast
			began := w.clock.Now()
			before := w.clock.Armed()
			i := p.start()
			w.armed(before, row.armed)
			w.ends(i, cmp.Or(row.want, row.loads)-time.Second)
			took := w.clock.Now().Sub(began)
			st := w.status("r1")
			if row.want == 0 {
				if st.Outcome.Kind != run.OK {
					t.Errorf("%+v", st.Outcome)
				}
				return
			}
			if st.Outcome.Kind != run.Timeout || st.Outcome.Error != setupText || st.Outcome.TimeoutPhase != "preflight" || st.Outcome.ProviderStarted {
				t.Errorf("%+v", st.Outcome)
			}
			if took < row.want || took > row.want+5*time.Second {
				t.Errorf("it was ended after %s", took)
			}
			if n := len(w.model.calls()); n != 1 {
				t.Errorf("the model was asked %d times", n)
			}
			if rows := w.rows(); len(rows) != 3 || rows[2].Text() != "go" {
				t.Errorf("rows %+v", rows)
			}
			w.accept(c, "r2", "next")
			w.process(nil).serve()
			if text(w.reply(c, "r2")) != "done" {
				t.Error("the lane does not go on")
			}
		})
	}
}

// slowAgents is the world's agents, some of whose answers take long.
type slowAgents struct {
	*world

	tools, prompt, models func(context.Context) error
}

func (s slowAgents) Tools(ctx context.Context, scope *tool.Scope) (*tool.Registry, error) {
	if s.tools != nil {
		if err := s.tools(ctx); err != nil {
			return nil, err
		}
	}
	return s.world.Tools(ctx, scope)
}

func (s slowAgents) Prompt(ctx context.Context, p loop.PromptInput) (string, error) {
	if s.prompt != nil {
		if err := s.prompt(ctx); err != nil {
			return "", err
		}
	}
	return s.world.Prompt(ctx, p)
}

func (s slowAgents) Candidates(ctx context.Context, in run.Input, e session.Entry, _ string) ([]model.Candidate, error) {
	if s.models != nil {
		if err := s.models(ctx); err != nil {
			return nil, err
		}
	}
	sel, err := s.Select(ctx, in, e)
	return []model.Candidate{{Selected: sel}}, err
}

// TestRuntime54_PreExecutionWatchdog: max(1 s, min(60 s, timeout/2)) from the turn's
// begin to its first model request; the text says how far it came.
func TestRuntime54_PreExecutionWatchdog(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		run   func(*run.Status)
		slow  func(s *slowAgents, wait func(context.Context) error)
		deaf  bool // it does not end when it is told to
		want  time.Duration
		phase string
		armed int // waits: the holder's, both watchdogs', the run's limit, the slow call's
	}{
		{"60 s", byCron(3_600_000), func(s *slowAgents, f func(context.Context) error) { s.prompt = f }, false, time.Minute, "context", 5},
		{"half of the run's limit", byCron(40_000), func(s *slowAgents, f func(context.Context) error) { s.tools = f }, false, 20 * time.Second, "workspace", 5},
		{"a second", byCron(1500), func(s *slowAgents, f func(context.Context) error) { s.models = f }, false, time.Second, "model", 5},
		{"no limit", byCron(-1), func(s *slowAgents, f func(context.Context) error) { s.tools = f }, false, time.Minute, "workspace", 4},
		{"what does not end is left behind", byCron(40_000), func(s *slowAgents, f func(context.Context) error) { s.tools = f }, true, 22 * time.Second, "workspace", 4},
		{"a prompt that does not end", byCron(40_000), func(s *slowAgents, f func(context.Context) error) { s.prompt = f }, true, 22 * time.Second, "context", 4},
		{"not for runs that somebody waits for", byNobody(600_000), func(s *slowAgents, f func(context.Context) error) { s.tools = f }, false, 0, "", 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.model.on(say("done"))
			c := w.connect()
			w.accept(c, "r1", "go", row.run)
			agents := slowAgents{world: w}
			wait := w.takes(5 * time.Minute)
			if row.deaf {
				free := make(chan struct{})
				defer close(free)
				wait = func(context.Context) error { <-free; return nil }
			}
			row.slow(&agents, wait)
			p := w.process(nil, func(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) { rc.Agents, rc.Chains = agents, agents })
			began := w.clock.Now()
			before := w.clock.Armed()
			i := p.start()
			w.armed(before, row.armed)
			w.ends(i, cmp.Or(row.want, 5*time.Minute)-time.Second)
			took := w.clock.Now().Sub(began)
			st := w.status("r1")
			if row.want == 0 {
				if st.Outcome.Kind != run.OK {
					t.Errorf("%+v", st.Outcome)
				}
				return
			}
			if want := "cron: isolated agent run stalled before execution start (last phase: " + row.phase + ")"; st.Outcome.Kind != run.Timeout || st.Outcome.Error != want || st.Outcome.TimeoutPhase != "preflight" {
				t.Errorf("%+v", st.Outcome)
			}
			if took < row.want || took > row.want+5*time.Second {
				t.Errorf("it was ended after %s, want %s", took, row.want)
			}
			if n := len(w.model.calls()); n != 0 {
				t.Errorf("the model was asked %d times", n)
			}
			w.accept(c, "r2", "next")
			w.process(nil).serve()
			if text(w.reply(c, "r2")) != "done" {
				t.Error("the lane does not go on")
			}
		})
	}
}

// A run that has asked a model is under its own limit alone.
func TestRuntime54_PreExecutionWatchdog_IsOverWithTheFirstRequest(t *testing.T) {
	t.Parallel()
	slow := newTool("slow", tool.ReadOnly)
	w := newWorld(t, slow)
	slow.run = func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		return tool.TextResult("at last"), w.takes(3 * time.Minute)(ctx)
	}
	w.model.on(callTools(block("c1", "slow")), say("done"))
	c := w.connect()
	w.accept(c, "r1", "go", byCron(600_000))
	i := w.process(nil).start()
	<-w.model.asked
	w.ends(i, 3*time.Minute-time.Second)
	if st := w.status("r1"); st.Outcome.Kind != run.OK || st.Outcome.Text != "done" {
		t.Errorf("%+v", st.Outcome)
	}
}

// TestRuntime54_Deadline: abort, then a drain of 15 s, and then the record.
func TestRuntime54_Deadline(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		run  func(*run.Status)
		ends time.Duration // how long the tool takes when it is told to end; 0: it does not
		want time.Duration
		says string
	}{
		{"what ends in time is kept", byCron(20_000), 10 * time.Second, 30 * time.Second, "cleaned up"},
		{"what does not is left behind", byCron(20_000), 0, 35 * time.Second, tool.TextAborted},
		{"a run of somebody who waits has 2 s", byNobody(20_000), 10 * time.Second, 22 * time.Second, tool.TextAborted},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			clean := newTool("clean", tool.Unsafe)
			w := newWorld(t, clean)
			free := make(chan struct{})
			defer close(free)
			begun := make(chan struct{})
			clean.run = func(ctx context.Context, _ tool.Call) (tool.Result, error) {
				close(begun)
				<-ctx.Done()
				var ends <-chan time.Time
				if row.ends > 0 {
					ends = w.clock.After(row.ends)
				}
				select {
				case <-ends:
				case <-free:
				}
				return tool.TextResult("cleaned up"), nil
			}
			w.model.on(callTools(model.Block{ID: "c1", Name: "clean", Arguments: json.RawMessage(`{}`)}), say("done"))
			c := w.connect()
			w.accept(c, "r1", "go", row.run)
			began := w.clock.Now()
			i := w.process(nil).start()
			<-begun
			w.ends(i, 19*time.Second)
			st := w.status("r1")
			if took := w.clock.Now().Sub(began); took < row.want || took > row.want+3*time.Second {
				t.Errorf("it was recorded after %s, want %s", took, row.want)
			}
			if st.Outcome.Kind != run.Timeout || st.Outcome.TimeoutPhase != "provider" {
				t.Errorf("%+v", st.Outcome)
			}
			rows := w.rows()
			if last := rows[len(rows)-1]; last.ToolCallID != "c1" || last.Text() != row.says {
				t.Errorf("the call's result: %q", last.Text())
			}
			w.accept(c, "r2", "next")
			w.process(nil).serve()
			if text(w.reply(c, "r2")) != "done" {
				t.Error("the lane does not go on")
			}
		})
	}
}
