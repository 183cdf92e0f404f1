package lane_test

import (
	"testing"
	"time"

	"laneway/shared/claim"
	"laneway/shared/lane"
	"laneway/shared/session"
)

func TestWakeUp_Decide(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	times := claim.Times{}.WithDefaults()
	p1 := session.Pending{Seq: 1, Lane: "main", Run: "r1"}
	p2 := session.Pending{Seq: 2, Lane: "cron", Run: "r2"}
	live, over := now.Add(times.Lease), now.Add(-times.Slack-time.Millisecond)
	for _, c := range []struct {
		name string
		m    session.Meta
		want lane.Decision
	}{
		{"a session that was never used", session.Meta{}, lane.Decision{Do: lane.Leave}},
		{"nothing left", session.Meta{Seq: 3, Token: 3}, lane.Decision{Do: lane.Leave}},
		{"a run waits", session.Meta{Pending: []session.Pending{p1}}, lane.Decision{Do: lane.Start, Run: p1}},
		{"the lowest sequence is first", session.Meta{Pending: []session.Pending{p1, p2}}, lane.Decision{Do: lane.Start, Run: p1}},
		{"the next is of another lane", session.Meta{Pending: []session.Pending{p2}}, lane.Decision{Do: lane.Forward, Lane: "cron"}},
		{"cut off, not ended yet", session.Meta{Pending: []session.Pending{p1, p2}, Cutoff: 1}, lane.Decision{Do: lane.Settle}},
		{"a run waits, a command has the claim", session.Meta{Pending: []session.Pending{p1}, Owner: "cmd:1", Lease: live}, lane.Decision{Do: lane.Leave}},
		{"a run waits, a command died", session.Meta{Pending: []session.Pending{p1}, Owner: "cmd:1", Lease: over}, lane.Decision{Do: lane.Start, Run: p1}},
		{"an active run under a live claim", session.Meta{Active: "r0", ActiveLane: "main", Owner: "r0#1", Lease: live, Pending: []session.Pending{p1}}, lane.Decision{Do: lane.Leave}},
		{"over, within the slack", session.Meta{Active: "r0", ActiveLane: "main", Owner: "r0#1", Lease: now.Add(-times.Slack)}, lane.Decision{Do: lane.Leave}},
		{"over by more than the slack", session.Meta{Active: "r0", ActiveLane: "main", Owner: "r0#1", Lease: over}, lane.Decision{Do: lane.Resume}},
		{"released between two attempts", session.Meta{Active: "r0", ActiveLane: "main"}, lane.Decision{Do: lane.Resume}},
		{"active before pending", session.Meta{Active: "r0", ActiveLane: "main", Pending: []session.Pending{p1}}, lane.Decision{Do: lane.Resume}},
		{"the active run is of another lane", session.Meta{Active: "r0", ActiveLane: "cron", Pending: []session.Pending{p1}}, lane.Decision{Do: lane.Forward, Lane: "cron"}},
		{"asleep", session.Meta{Active: "r0", ActiveSeq: 1, ActiveLane: "main", Wake: now.Add(time.Hour)}, lane.Decision{Do: lane.Leave}},
		{"asleep, others wait", session.Meta{Active: "r0", ActiveSeq: 1, ActiveLane: "main", Wake: now.Add(time.Hour), Pending: []session.Pending{p2}}, lane.Decision{Do: lane.Leave}},
		{"asleep in another lane", session.Meta{Active: "r0", ActiveSeq: 1, ActiveLane: "cron", Wake: now.Add(time.Hour)}, lane.Decision{Do: lane.Leave}},
		{"woken", session.Meta{Active: "r0", ActiveSeq: 1, ActiveLane: "main", Wake: now}, lane.Decision{Do: lane.Resume}},
		{"asleep, with a cancel mark", session.Meta{Active: "r0", ActiveSeq: 1, ActiveLane: "main", Wake: now.Add(time.Hour), Cancel: "r0"}, lane.Decision{Do: lane.Resume}},
		{"asleep, the mark of another run", session.Meta{Active: "r0", ActiveSeq: 1, ActiveLane: "main", Wake: now.Add(time.Hour), Cancel: "r9"}, lane.Decision{Do: lane.Leave}},
		{"asleep, cut off", session.Meta{Active: "r0", ActiveSeq: 2, ActiveLane: "main", Wake: now.Add(time.Hour), Cutoff: 2}, lane.Decision{Do: lane.Resume}},
		{"asleep, above the cutoff", session.Meta{Active: "r0", ActiveSeq: 3, ActiveLane: "main", Wake: now.Add(time.Hour), Cutoff: 2}, lane.Decision{Do: lane.Leave}},
		{"a message that waits for others", session.Meta{Pending: []session.Pending{{Seq: 1, Lane: "main", Run: "r1", Mode: "collect"}}, Debounce: now.Add(time.Second)}, lane.Decision{Do: lane.Wait, For: time.Second}},
		{"it has waited", session.Meta{Pending: []session.Pending{{Seq: 1, Lane: "main", Run: "r1", Mode: "collect"}}, Debounce: now}, lane.Decision{Do: lane.Start, Run: session.Pending{Seq: 1, Lane: "main", Run: "r1", Mode: "collect"}}},
		{"a run of its own right waits for nobody", session.Meta{Pending: []session.Pending{p1}, Debounce: now.Add(time.Second)}, lane.Decision{Do: lane.Start, Run: p1}},
		{"unsettled", session.Meta{Unsettled: []string{"r0"}, Pending: []session.Pending{p1}}, lane.Decision{Do: lane.Settle}},
		{"unsettled beside a live claim", session.Meta{Unsettled: []string{"r0"}, Active: "r1", Owner: "r1#1", Lease: live}, lane.Decision{Do: lane.Settle}},
		{"cut off beside a live claim", session.Meta{Pending: []session.Pending{p1}, Cutoff: 1, Active: "r0", Owner: "r0#1", Lease: live}, lane.Decision{Do: lane.Settle}},
	} {
		if got := lane.Decide(c.m, "main", now, times); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestWakeUp_GoesToTheLaneOfTheRunThatItIsMeantFor(t *testing.T) {
	t.Parallel()
	cron := session.Pending{Seq: 5, Lane: "cron", Run: "c"}
	for _, c := range []struct {
		name, want string
		m          session.Meta
	}{
		{"nothing", "main", session.Meta{}},
		{"the active run", "subagent", session.Meta{Active: "a", ActiveLane: "subagent", Pending: []session.Pending{cron}}},
		{"the next pending run", "cron", session.Meta{Pending: []session.Pending{cron}}},
		{"above the cutoff", "cron", session.Meta{Pending: []session.Pending{{Seq: 1, Lane: "main", Run: "x"}, cron}, Cutoff: 1}},
		{"all cut off", "main", session.Meta{Pending: []session.Pending{cron}, Cutoff: 5}},
	} {
		if got := lane.NextLane(c.m); got != c.want {
			t.Errorf("%s: lane %s, want %s", c.name, got, c.want)
		}
	}
}

func TestWakeUp_BodiesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "{", "[]", "{}", `{"t":"a","k":"b"}`, `{"k":"b","l":"main"}`, `{"t":"a","l":"main"}`} {
		if w, err := lane.ParseWakeup([]byte(body)); err == nil {
			t.Errorf("%q was read as %+v", body, w)
		}
	}
}
