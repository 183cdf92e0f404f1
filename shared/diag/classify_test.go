package diag_test

import (
	"testing"
	"time"

	"laneway/shared/diag"
	"laneway/shared/protocol"
	"laneway/shared/session"
)

const (
	idle       = protocol.SessionIdle
	waiting    = protocol.SessionWaiting
	processing = protocol.SessionProcessing

	longRunning = protocol.EventSessionLongRunning
	stalled     = protocol.EventSessionStalled
	stuck       = protocol.EventSessionStuck

	s      = time.Second
	minute = time.Minute
)

var defaults = diag.Thresholds{}.WithDefaults()

// at is a session that processes something that lives and has shown no sign of it for
// d; queue messages wait.
func at(kind string, d time.Duration, queue int) diag.Input {
	return diag.Input{State: processing, Queue: queue, Age: d, Progress: d, Kind: kind, Owned: kind != "", WorkAge: d}
}

func with(in diag.Input, f func(*diag.Input)) diag.Input {
	f(&in)
	return in
}

// TestClassify names each row of the table (spec: runtime 6.3), and what is above it.
func TestClassify(t *testing.T) {
	t.Parallel()
	const (
		model = session.WorkModel
		tool  = session.WorkTool
		run   = diag.WorkRun
	)
	dead := func(in *diag.Input) { in.Owned = false }
	repeated := func(d time.Duration) func(*diag.Input) {
		return func(in *diag.Input) { in.Repeated, in.Progress = d, s }
	}
	limit := func(d time.Duration) func(*diag.Input) { return func(in *diag.Input) { in.Limit = d } }
	retry := func(in *diag.Input) { in.RetryWait = true }
	person := func(in *diag.Input) { in.RuntimeWait = true }
	terminal := func(in *diag.Input) { in.Terminal = true }
	for _, c := range []struct {
		name    string
		in      diag.Input
		row     int
		event   string
		reason  string
		class   string
		recover bool
	}{
		{"1: a retry wait", with(at(run, time.Hour, 3), retry), 1, longRunning, "provider_retry_wait", "long_running", false},
		{"1 before 3", with(with(at(model, s, 0), retry), repeated(time.Hour)), 1, longRunning, "provider_retry_wait", "long_running", false},
		{"2: a person is asked", with(at(tool, time.Hour, 3), person), 2, longRunning, "runtime_owned_wait", "long_running", false},
		{"2 before 5", with(at(tool, 20*minute, 0), person), 2, longRunning, "runtime_owned_wait", "long_running", false},
		{"3: requests are repeated for the abort time", with(at(model, 0, 0), repeated(6*minute)), 3, stalled, "repeated_model_requests_without_progress", "stalled_agent_run", true},
		{"3 not yet", with(at(model, 0, 0), repeated(6*minute-1)), 10, longRunning, "active_work", "long_running", false},
		{"4: queued and nobody runs", diag.Input{State: idle, Queue: 1, Age: 2*minute + 1, Progress: 2*minute + 1}, 4, stuck, "queued_work_without_active_run", "stale_session_state", true},
		{"5: a silent tool", at(tool, 8*minute, 0), 5, stalled, "blocked_tool_call", "blocked_tool_call", false},
		{"5: for 15 min", at(tool, 15*minute, 0), 5, stalled, "blocked_tool_call", "blocked_tool_call", true},
		{"5: just below", at(tool, 15*minute-1, 0), 5, stalled, "blocked_tool_call", "blocked_tool_call", false},
		{"5: by its own deadline", with(at(tool, 39*minute, 0), limit(40*minute)), 5, stalled, "blocked_tool_call", "blocked_tool_call", false},
		{"5: over its own deadline", with(at(tool, 40*minute, 0), limit(40*minute)), 5, stalled, "blocked_tool_call", "blocked_tool_call", true},
		{"5: a short deadline does not shorten it", with(at(tool, 10*minute, 0), limit(s)), 5, stalled, "blocked_tool_call", "blocked_tool_call", false},
		{"5: no deadline at all", with(at(tool, 48*time.Hour, 0), limit(-1)), 5, stalled, "blocked_tool_call", "blocked_tool_call", false},
		{"5 before 6", with(at(tool, 8*minute, 2), terminal), 5, stalled, "blocked_tool_call", "blocked_tool_call", false},
		{"5: a tool that has just begun behind silence", with(at(tool, 8*minute, 0), func(in *diag.Input) { in.WorkAge = s }), 9, stalled, "active_work_without_progress", "stalled_agent_run", true},
		{"6: queued behind an end that does not come", with(at(run, 3*minute, 1), terminal), 6, stalled, "queued_behind_terminal_active_work", "stalled_agent_run", false},
		{"6: for the abort time", with(at(run, 6*minute, 1), terminal), 6, stalled, "queued_behind_terminal_active_work", "stalled_agent_run", true},
		{"6 before 7", with(at(model, 3*minute, 1), terminal), 6, stalled, "queued_behind_terminal_active_work", "stalled_agent_run", false},
		{"7: a silent model", at(model, 150*s, 0), 7, longRunning, "active_model_call_without_progress", "long_running", false},
		{"7: just below the abort time", at(model, 6*minute-1, 1), 7, longRunning, "active_model_call_without_progress", "long_running", false},
		{"8: a silent model for the abort time", at(model, 6*minute, 0), 8, stalled, "active_work_without_progress", "stalled_agent_run", true},
		{"8: whose request may take longer", with(at(model, 9*minute, 0), limit(10*minute)), 8, stalled, "active_work_without_progress", "stalled_agent_run", false},
		{"8: and has taken longer", with(at(model, 10*minute, 0), limit(10*minute)), 8, stalled, "active_work_without_progress", "stalled_agent_run", true},
		{"8: whose request may take for ever", with(at(model, 10*time.Hour, 0), limit(-1)), 8, stalled, "active_work_without_progress", "stalled_agent_run", false},
		{"9: other silent work", at(run, 3*minute, 0), 9, stalled, "active_work_without_progress", "stalled_agent_run", false},
		{"9: for the abort time", at(run, 6*minute, 0), 9, stalled, "active_work_without_progress", "stalled_agent_run", true},
		{"10: work that moves", with(at(model, s, 0), func(in *diag.Input) { in.Age = time.Hour }), 10, longRunning, "active_work", "long_running", false},
		{"10: with others behind it", at(tool, s, 2), 10, longRunning, "queued_behind_active_work", "long_running", false},
		{"11: nobody works", at("", 3*minute, 0), 11, stuck, "stale_session_state", "stale_session_state", true},
		{"11: others wait", at("", 3*minute, 1), 11, stuck, "queued_work_without_active_run", "stale_session_state", true},
		{"11: a dead model call masks nothing", with(at(model, 150*s, 1), dead), 11, stuck, "queued_work_without_active_run", "stale_session_state", true},
		{"11: nor does a dead tool", with(at(tool, s, 0), dead), 11, stuck, "stale_session_state", "stale_session_state", true},
		{"11: nor do the requests of a dead one", with(with(at(model, s, 0), repeated(time.Hour)), dead), 11, stuck, "stale_session_state", "stale_session_state", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := diag.Report{Event: c.event, Reason: c.reason, Classification: c.class, Recover: c.recover, Row: c.row}
			if got := defaults.Classify(c.in); got != want {
				t.Errorf("%+v\n got %+v\nwant %+v", c.in, got, want)
			}
		})
	}
}

func TestConsidered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   diag.Input
		want bool
	}{
		"busy":                    {at(diag.WorkRun, 119*s, 0), false},
		"busy for the warn time":  {at(diag.WorkRun, 2*minute, 0), true},
		"idle":                    {diag.Input{State: idle, Progress: time.Hour, Age: time.Hour}, false},
		"idle with work":          {diag.Input{State: idle, Queue: 1, Progress: 119 * s, Age: time.Hour}, false},
		"idle with work for long": {diag.Input{State: idle, Queue: 1, Progress: 2 * minute}, true},
		"asleep":                  {diag.Input{State: waiting, Progress: time.Hour, Age: time.Hour}, false},
		"asleep before others":    {diag.Input{State: waiting, Queue: 1, Progress: time.Hour}, true},
	} {
		if got := defaults.Considered(c.in); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestThresholds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want diag.Thresholds }{
		"defaults":               {diag.Thresholds{}, diag.Thresholds{Warn: 2 * minute, Abort: 6 * minute, Tool: 15 * minute, Settle: 15 * s, Late: s}},
		"a short warning":        {diag.Thresholds{Warn: 10 * s}, diag.Thresholds{Warn: 10 * s, Abort: 5 * minute, Tool: 15 * minute, Settle: 15 * s, Late: s}},
		"a long warning":         {diag.Thresholds{Warn: 10 * minute}, diag.Thresholds{Warn: 10 * minute, Abort: 30 * minute, Tool: 30 * minute, Settle: 15 * s, Late: s}},
		"too short a time":       {diag.Thresholds{Abort: minute}, diag.Thresholds{Warn: 2 * minute, Abort: 6 * minute, Tool: 15 * minute, Settle: 15 * s, Late: s}},
		"a long time":            {diag.Thresholds{Abort: time.Hour}, diag.Thresholds{Warn: 2 * minute, Abort: time.Hour, Tool: time.Hour, Settle: 15 * s, Late: s}},
		"a short time for tools": {diag.Thresholds{Tool: minute}, diag.Thresholds{Warn: 2 * minute, Abort: 6 * minute, Tool: 6 * minute, Settle: 15 * s, Late: s}},
	} {
		if got := c.in.WithDefaults(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestParseThresholds(t *testing.T) {
	t.Parallel()
	got, err := diag.ParseThresholds("60000", "600000")
	if err != nil || got != (diag.Thresholds{Warn: minute, Abort: 10 * minute}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := diag.ParseThresholds("", ""); err != nil || got != (diag.Thresholds{}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"0", "-1", "2m", "1.5", "99999999999999"} {
		for i, f := range []func() (diag.Thresholds, error){
			func() (diag.Thresholds, error) { return diag.ParseThresholds(bad, "") },
			func() (diag.Thresholds, error) { return diag.ParseThresholds("", bad) },
		} {
			if got, err := f(); err == nil {
				t.Errorf("%d: %q is %+v", i, bad, got)
			}
		}
	}
}
