package diag_test

import (
	"testing"
	"time"

	"laneway/shared/diag"
	"laneway/shared/session"
)

var now = time.UnixMilli(1_772_366_400_000)

func ago(d time.Duration) int64 { return now.Add(-d).UnixMilli() }

// TestObserve: what the hot item says, and what it is taken for.
func TestObserve(t *testing.T) {
	t.Parallel()
	pending := []session.Pending{{Seq: 7, Lane: "main", Run: "r7"}, {Seq: 8, Lane: "main", Run: "r8"}}
	active := func(f func(*session.Meta)) session.Meta {
		m := session.Meta{
			Active: "r1", ActiveSeq: 5, ActiveLane: "main", ActiveAt: ago(time.Hour), Owner: "r1#2", Lease: now.Add(20 * s), Attempt: 2,
			Progress: session.Progress{At: ago(minute), Why: session.ProgressStream},
		}
		f(&m)
		return m
	}
	model := session.Work{Kind: session.WorkModel, Since: ago(3 * minute), Limit: 2 * minute}
	retry := session.Work{Kind: session.WorkRetry, Since: ago(minute), Limit: 10 * minute}
	for name, c := range map[string]struct {
		m     session.Meta
		since int64
		want  diag.Input
	}{
		"nothing waits": {
			session.Meta{Lease: now.Add(-time.Hour)},
			0,
			diag.Input{State: idle, Progress: time.Hour},
		},
		"messages wait since the claim was released": {
			session.Meta{Lease: now.Add(-minute), Pending: pending, Updated: ago(s)},
			ago(time.Hour),
			diag.Input{State: idle, Queue: 2, Progress: minute},
		},
		"since they came": {
			session.Meta{Lease: now.Add(-time.Hour), Pending: pending},
			ago(minute),
			diag.Input{State: idle, Queue: 2, Progress: minute},
		},
		"behind a dead command": {
			session.Meta{Owner: "cmd:x", Lease: now.Add(-minute), Pending: pending},
			ago(2 * minute),
			diag.Input{State: idle, Queue: 2, Progress: 2 * minute},
		},
		"behind a live command": {
			session.Meta{Owner: "cmd:x", Lease: now.Add(s), Pending: pending},
			ago(2 * minute),
			diag.Input{State: idle, Queue: 2},
		},
		"stopped messages do not wait": {
			session.Meta{Lease: now.Add(-minute), Pending: pending, Cutoff: 7},
			ago(minute),
			diag.Input{State: processing, Queue: 1, Kind: diag.WorkRun, Terminal: true, Why: session.ProgressCompleted, Progress: minute},
		},
		"an end that is not told": {
			session.Meta{Lease: now.Add(-minute), Unsettled: []string{"r1"}},
			ago(minute),
			diag.Input{State: processing, Kind: diag.WorkRun, Terminal: true, Why: session.ProgressCompleted, Progress: minute},
		},
		"a run between two things": {
			active(func(m *session.Meta) { m.MailN = 2 }), 0,
			diag.Input{State: processing, Queue: 2, Kind: diag.WorkRun, Owned: true, Progress: minute, Why: session.ProgressStream},
		},
		"a model": {
			active(func(m *session.Meta) { m.Progress.Work = model }), 0,
			diag.Input{State: processing, Kind: session.WorkModel, Owned: true, Progress: minute, Why: session.ProgressStream, WorkAge: 3 * minute, Limit: 2 * minute},
		},
		"a model that is asked again and again": {
			active(func(m *session.Meta) { m.Progress.Work, m.Progress.Asked = model, ago(9*minute) }), 0,
			diag.Input{
				State: processing, Kind: session.WorkModel, Owned: true, Progress: minute, Why: session.ProgressStream, WorkAge: 3 * minute, Limit: 2 * minute, Repeated: 9 * minute,
			},
		},
		"a tool of a dead run": {
			active(func(m *session.Meta) {
				m.Lease = now.Add(-6 * s)
				m.Progress.Work = session.Work{Kind: session.WorkTool, Tool: "exec", CallID: "1", Since: ago(2 * minute)}
			}), 0,
			diag.Input{State: processing, Kind: session.WorkTool, Progress: minute, Why: session.ProgressStream, WorkAge: 2 * minute, Tool: "exec", CallID: "1"},
		},
		"a run whose claim a command has": {
			active(func(m *session.Meta) { m.Owner = "cmd:x" }), 0,
			diag.Input{State: processing, Kind: diag.WorkRun, Progress: minute, Why: session.ProgressStream},
		},
		"a pause": {
			active(func(m *session.Meta) { m.Progress.Work = retry }), 0,
			diag.Input{State: processing, Kind: diag.WorkRun, Owned: true, RetryWait: true, Progress: minute, Why: session.ProgressStream, WorkAge: minute, Limit: 10 * minute},
		},
		"a pause of a dead run": {
			active(func(m *session.Meta) { m.Progress.Work, m.Lease = retry, now.Add(-minute) }), 0,
			diag.Input{State: processing, Kind: diag.WorkRun, Progress: minute, Why: session.ProgressStream, WorkAge: minute, Limit: 10 * minute},
		},
		"a sleeping run": {
			active(func(m *session.Meta) {
				m.Owner, m.Lease, m.Wake = "", now.Add(-minute), now.Add(minute)
				m.Progress.Work = retry
			}), 0,
			diag.Input{State: waiting, Kind: diag.WorkRun, RetryWait: true, Progress: minute, Why: session.ProgressStream, WorkAge: minute, Limit: 10 * minute},
		},
		"a run that asks a person": {
			active(func(m *session.Meta) {
				m.Owner, m.Lease, m.Wake = "", now.Add(-minute), now.Add(minute)
				m.Progress.Work = session.Work{Kind: session.WorkQuestion, Since: ago(minute)}
			}), 0,
			diag.Input{State: waiting, Kind: diag.WorkRun, RuntimeWait: true, Progress: minute, Why: session.ProgressStream, WorkAge: minute},
		},
		"a sleeper that did not wake": {
			active(func(m *session.Meta) {
				m.Owner, m.Lease, m.Wake = "", now.Add(-time.Hour), now.Add(-3*minute)
				m.Progress.At = ago(time.Hour)
			}), 0,
			diag.Input{State: processing, Kind: diag.WorkRun, Progress: 3 * minute, Why: session.ProgressStream},
		},
		"a run without a sign of life": {
			active(func(m *session.Meta) { m.Progress = session.Progress{} }), 0,
			diag.Input{State: processing, Kind: diag.WorkRun, Owned: true, Progress: time.Hour},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := diag.Observe(c.m, now, 5*s, c.since)
			c.want.Age, c.want.Generation = c.want.Progress, now.Add(-c.want.Progress).UnixMilli()
			if got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}
