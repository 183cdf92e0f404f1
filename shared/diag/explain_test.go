package diag_test

import (
	"strings"
	"testing"
	"time"

	"laneway/shared/claim"
	"laneway/shared/diag"
	"laneway/shared/run"
	"laneway/shared/session"
)

// facts are those of a session at a moment; change makes it another one.
func facts(change func(*diag.Facts)) diag.Facts {
	f := diag.Facts{
		Now: now, Times: claim.Times{}.WithDefaults(), Thresholds: defaults, RunTimeout: 48 * time.Hour,
		Meta: session.Meta{Ref: session.Ref{Tenant: "acme", Key: "agent:main:chat"}, Token: 7, Lease: now.Add(-10 * minute), Created: 1, SessionID: "s1"},
	}
	change(&f)
	f.Input = diag.Observe(f.Meta, f.Now, f.Times.Slack, ago(3*minute))
	return f
}

// running makes it one whose run is at work.
func running(work session.Work, silent time.Duration, more ...func(*diag.Facts)) func(*diag.Facts) {
	return func(f *diag.Facts) {
		m := &f.Meta
		m.Owner, m.Lease, m.Active, m.ActiveSeq, m.ActiveLane, m.ActiveAt, m.Attempt, m.Stalled = "r1#2", now.Add(26*s), "r1", 5, "main", ago(12*minute), 2, 1
		m.Progress = session.Progress{At: ago(silent), Why: session.ProgressStream, Work: work}
		f.Active = &run.Status{Ref: run.Ref{Run: "r1"}, RunID: "r1", AcceptedAt: ago(13 * minute), Checkpoint: []byte(`{"step":3,"tools":2}`)}
		for _, c := range more {
			c(f)
		}
	}
}

func queued(f *diag.Facts) {
	f.Meta.Pending = []session.Pending{{Seq: 6, Lane: "main", Run: "r2", Mode: "followup"}, {Seq: 7, Lane: "cron", Run: "r3"}}
	f.Waiting = []run.Status{{RunID: "r2", Seq: 6, Lane: "main", AcceptedAt: ago(3 * minute)}, {RunID: "r3", Seq: 7, Lane: "cron", AcceptedAt: ago(minute)}}
}

func dead(f *diag.Facts) {
	f.Meta.Lease = now.Add(-40 * s)
	f.NextWake = now.Add(20 * s)
}

// TestExplain: each state that a session can be in, what is said of it, and what is
// said to come next.
func TestExplain(t *testing.T) {
	t.Parallel()
	model := session.Work{Kind: session.WorkModel, Since: ago(50 * s), Limit: 2 * minute}
	tool := session.Work{Kind: session.WorkTool, Tool: "exec", CallID: "call_1", Since: ago(150 * s)}
	for name, c := range map[string]struct {
		f    func(*diag.Facts)
		next string
		in   time.Duration
		text string
	}{
		"idle": {func(*diag.Facts) {}, "none", 0, `
agent:main:chat is idle
claim: free
next: none: no work is left
`},
		"a model that streams, with others behind it": {running(model, 10*s, queued), "cut_model_call", 110 * s, `
agent:main:chat is processing
claim: run r1, attempt 2, token 7, renewed 4s ago, good for 26s
run r1 in lane main: running, attempt 2, step 3, 2 tool call(s), began 12m ago
  waits for the model for 50s
  last sign of life: model_call:stream_progress, 10s ago
waiting 1: run r2 in lane main, followup, for 3m
waiting 2: run r3 in lane cron, for 1m
bounds: lease in 26s, model_silence in 1m50s, stuck_warn in 1m50s, stuck_abort in 5m50s, run_timeout in 47h48m
next: cut_model_call in 1m50s: the model call may be silent for 2m0s
then: warn in 1m50s: operators are warned if it shows no sign of life
then: end_run in 5m50s: it is ended if it shows no sign of life
then: end_run in 47h48m: its time is over then, as timeout
`},
		"a silent tool": {running(tool, 150*s), "end_run", 15*minute - 150*s, `
agent:main:chat is processing
claim: run r1, attempt 2, token 7, renewed 4s ago, good for 26s
run r1 in lane main: running, attempt 2, step 3, 2 tool call(s), began 12m ago
  tool exec (call_1) runs for 2m30s
  last sign of life: model_call:stream_progress, 2m30s ago
bounds: lease in 26s, stuck_abort in 12m30s, run_timeout in 47h48m
diagnosis: blocked_tool_call (blocked_tool_call)
next: end_run in 12m30s: it is ended if it shows no sign of life
then: end_run in 47h48m: its time is over then, as timeout
`},
		"a stopped run that has not ended": {running(model, 10*s, func(f *diag.Facts) { f.Meta.Cancel, f.Meta.CancelWhy = "r1", "rpc" }), "end_run", 700 * time.Millisecond, ""},
		"a dead holder": {running(model, 60*s, dead, queued), "resume", 20 * s, `
agent:main:chat is processing
claim: run r1, attempt 2, token 7, dead: its lease was over 40s ago
run r1 in lane main: dead, attempt 2, step 3, 2 tool call(s), began 12m ago
  waits for the model for 50s
  last sign of life: model_call:stream_progress, 1m ago
waiting 1: run r2 in lane main, followup, for 3m
waiting 2: run r3 in lane cron, for 1m
bounds: lease 40s ago, run_timeout in 47h48m
next: resume in 20s: its holder is gone: whoever gets the next wake-up goes on from the last step; one is sent then
`},
		"a dead holder after three attempts":  {running(model, 60*s, dead, func(f *diag.Facts) { f.Meta.Stalled = 3 }), "end_run", 20 * s, ""},
		"a dead holder whose run was stopped": {running(model, 60*s, dead, func(f *diag.Facts) { f.Meta.Cancel = "r1" }), "end_run", 20 * s, ""},
		"a holder that may just have died":    {running(model, 60*s, func(f *diag.Facts) { f.Meta.Lease = now.Add(-2 * s) }), "cut_model_call", 60 * s, ""},
		"a revoked claim": {running(model, 7*minute, func(f *diag.Facts) {
			f.Meta.Owner, f.Meta.Cancel, f.Meta.CancelWhy = claim.Revoked, "r1", run.StopStuck
		}), "resume", 31*s + time.Millisecond, `
agent:main:chat is processing
claim: taken from its holder, token 7, free in 26s
run r1 in lane main: stopping, attempt 2, step 3, 2 tool call(s), began 12m ago
  waits for the model for 50s
  last sign of life: model_call:stream_progress, 7m ago
  told to end: stuck_recovery
bounds: lease in 26s, run_timeout in 47h48m
diagnosis: stale_session_state (stale_session_state)
next: resume in 31s: the run's holder did not react and lost its claim; it is ended when its lease is over
`},
		"a sleeping run": {running(session.Work{Kind: session.WorkRetry, Since: ago(minute), Limit: time.Hour}, minute, func(f *diag.Facts) {
			f.Meta.Owner, f.Meta.Lease, f.Meta.Wake = "", now.Add(-minute), now.Add(59*minute)
		}), "resume", 59 * minute, `
agent:main:chat is waiting
claim: free
run r1 in lane main: sleeping, attempt 2, step 3, 2 tool call(s), began 12m ago
  pauses before the model is asked again, for 1m
  last sign of life: model_call:stream_progress, 1m ago
bounds: run_timeout in 47h48m
next: resume in 59m: the run sleeps until then
then: end_run in 47h48m: its time is over then, as timeout
`},
		"messages that wait": {func(f *diag.Facts) { queued(f); f.NextWake = now.Add(5 * s) }, "wake_up", 5 * s, `
agent:main:chat is idle
claim: free
waiting 1: run r2 in lane main, followup, for 3m
waiting 2: run r3 in lane cron, for 1m
diagnosis: stale_session_state (queued_work_without_active_run)
next: wake_up in 5s: run r2 starts when its wake-up gets its turn in lane main; the wake-up is repeated then
`},
		"messages that wait for more": {func(f *diag.Facts) { queued(f); f.Meta.Debounce = now.Add(400 * time.Millisecond) }, "start", 400 * time.Millisecond, ""},
		"messages behind a command":   {func(f *diag.Facts) { queued(f); f.Meta.Owner, f.Meta.Lease = "cmd:x", now.Add(s) }, "start", 6*s + time.Millisecond, ""},
		"an end that is not told": {func(f *diag.Facts) {
			f.Meta.Unsettled, f.Unsettled, f.NextWake = []string{"r0"}, []string{"r0"}, now.Add(2*s)
		}, "tell_the_end", 2 * s, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := diag.Explain(facts(c.f))
			if e.Next.Action != c.next || time.Duration(e.Next.InMs)*time.Millisecond != c.in {
				t.Errorf("next %+v, want %s in %v", e.Next, c.next, c.in)
			}
			if c.in > 0 && e.Next.At != now.Add(c.in).UnixMilli() {
				t.Errorf("at %d", e.Next.At)
			}
			if c.text != "" && e.Text != strings.TrimPrefix(c.text, "\n") {
				t.Errorf("got\n%s\nwant%s", e.Text, c.text)
			}
		})
	}
}

// What is explained is what a look does: where a run is said to be ended at a time, it
// is not before that, and it is then.
func TestExplain_KeepsItsWord(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]session.Work{
		"a run": {}, "a model": {Kind: session.WorkModel, Limit: 10 * minute}, "a tool": {Kind: session.WorkTool, Tool: "exec", CallID: "1"},
		"a tool with its own time": {Kind: session.WorkTool, Tool: "exec", CallID: "1", Limit: 40 * minute},
	} {
		work.Since = ago(0)
		f := facts(running(work, 0))
		e := diag.Explain(f)
		at := int64(0)
		for _, b := range e.Bounds {
			if b.Name == "stuck_abort" {
				at = b.At
			}
		}
		if at == 0 {
			t.Fatalf("%s: %+v", name, e.Bounds)
		}
		judged := func(ms int64) bool {
			m := f.Meta
			m.Lease = time.UnixMilli(ms).Add(minute)
			return defaults.Classify(diag.Observe(m, time.UnixMilli(ms), 5*s, 0)).Recover
		}
		if judged(at-1) || !judged(at) {
			t.Errorf("%s: said to be ended in %v", name, time.UnixMilli(at).Sub(now))
		}
	}
	forever := diag.Explain(facts(running(session.Work{Kind: session.WorkModel, Since: ago(0), Limit: -1}, 0)))
	for _, b := range forever.Bounds {
		if b.Name == "stuck_abort" || b.Name == "model_silence" {
			t.Errorf("a model that may be silent for ever: %+v", b)
		}
	}
}
