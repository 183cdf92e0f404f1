package session_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"laneway/shared/session"
	"laneway/shared/table"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const slack = 5 * time.Second

func TestDecodeMeta_OfNothingIsTheZeroMeta(t *testing.T) {
	t.Parallel()
	ref := session.Ref{Tenant: "t", Key: "agent:main:x"}
	m := session.DecodeMeta(ref, nil)
	if m.Exists() || m.Ref != ref || m.WorkLeft(now, slack) || m.Busy {
		t.Errorf("decoded %+v", m)
	}
	if _, ok := m.Lowest(); ok {
		t.Error("a run waits in it")
	}
}

func TestDecodeMeta_PendingRunsAreInAcceptOrder(t *testing.T) {
	t.Parallel()
	pend := make(table.Map)
	for _, p := range []session.Pending{
		{Seq: 12, Lane: "main", Run: "a|b"},
		{Seq: 2, Lane: "cron", Run: "c"},
		{Seq: 100, Lane: "main", Run: "d", Mode: "collect"},
		{Seq: 101, Lane: "main", Run: "e", Mode: "followup", Rev: 12},
		{Seq: 102, Lane: "main", Run: "f", Rev: 1},
	} {
		pend[session.PendingMember(p.Seq)] = p.Value()
	}
	pend["damaged"], pend["0000000001"] = "x", int64(3)
	m := session.DecodeMeta(session.Ref{}, &table.Item{Attrs: table.Attrs{session.AttrPending: pend}})
	want := []session.Pending{
		{Seq: 2, Lane: "cron", Run: "c"},
		{Seq: 12, Lane: "main", Run: "a|b"},
		{Seq: 100, Lane: "main", Run: "d", Mode: "collect"},
		{Seq: 101, Lane: "main", Run: "e", Mode: "followup", Rev: 12},
		{Seq: 102, Lane: "main", Run: "f", Rev: 1},
	}
	if !slices.Equal(m.Pending, want) {
		t.Errorf("pending %+v", m.Pending)
	}
}

func TestMeta_CutAndLowestPartThePendingRuns(t *testing.T) {
	t.Parallel()
	m := session.Meta{Cutoff: 3}
	for _, seq := range []int64{1, 3, 4, 9} {
		m.Pending = append(m.Pending, session.Pending{Seq: seq, Run: fmt.Sprint("r", seq)})
	}
	if cut := m.Cut(); len(cut) != 2 || cut[1].Seq != 3 {
		t.Errorf("cut %+v", cut)
	}
	if p, ok := m.Lowest(); !ok || p.Seq != 4 {
		t.Errorf("lowest %+v", p)
	}
	m.Cutoff = 9
	if p, ok := m.Lowest(); ok {
		t.Errorf("lowest %+v below the cutoff", p)
	}
}

func TestMeta_WorkLeft(t *testing.T) {
	t.Parallel()
	waits := []session.Pending{{Seq: 2, Lane: "main", Run: "p"}}
	live, dead := now, now.Add(-slack-time.Millisecond)
	for _, c := range []struct {
		name   string
		m      session.Meta
		except []string
		want   bool
	}{
		{"nothing", session.Meta{}, nil, false},
		{"a run waits", session.Meta{Pending: waits}, nil, true},
		{"it waits behind an active one", session.Meta{Pending: waits, Active: "r", ActiveSeq: 1, Owner: "r#1", Lease: live}, nil, false},
		{"whose claim is dead", session.Meta{Active: "r", ActiveSeq: 1, Owner: "r#1", Lease: dead}, nil, true},
		{"that nobody has", session.Meta{Active: "r", ActiveSeq: 1}, nil, true},
		{"that sleeps", session.Meta{Active: "r", ActiveSeq: 1, Wake: now.Add(time.Second)}, nil, false},
		{"that slept", session.Meta{Active: "r", ActiveSeq: 1, Wake: now}, nil, true},
		{"that sleeps and is marked", session.Meta{Active: "r", ActiveSeq: 1, Wake: now.Add(time.Second), Cancel: "r"}, nil, true},
		{"ended", session.Meta{Unsettled: []string{"r"}}, nil, true},
		{"ended, told already", session.Meta{Unsettled: []string{"r"}}, []string{"r", "x"}, false},
		{"another ended", session.Meta{Unsettled: []string{"q", "r"}}, []string{"r"}, true},
		{"ended beside a live claim", session.Meta{Unsettled: []string{"q"}, Active: "r", ActiveSeq: 1, Owner: "r#1", Lease: live}, nil, true},
		{"cut off beside a live claim", session.Meta{Pending: waits, Cutoff: 2, Active: "r", ActiveSeq: 3, Owner: "r#1", Lease: live}, nil, true},
	} {
		if got := c.m.WorkLeft(now, slack, c.except...); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestActiveShardsAreAllUsed(t *testing.T) {
	t.Parallel()
	seen := make(map[string]int)
	for n := range 2000 {
		seen[session.Ref{Tenant: "t", Key: fmt.Sprint("k", n)}.ActivePK()]++
	}
	for n := range session.ActiveShards {
		if got := seen[session.ActiveShard(n)]; got < 60 || got > 200 {
			t.Errorf("part %d has %d of 2000 sessions", n, got)
		}
	}
	if len(seen) != session.ActiveShards {
		t.Errorf("%d parts", len(seen))
	}
}

func TestRecentOrder(t *testing.T) {
	t.Parallel()
	early, late := session.RecentSK(now, "z"), session.RecentSK(now.Add(time.Millisecond), "a")
	if early >= late {
		t.Errorf("%q is not before %q", early, late)
	}
}

// Sequences sort as strings do.
func TestSortKeysFollowSequences(t *testing.T) {
	t.Parallel()
	ref := session.Ref{Tenant: "t", Key: "k"}
	for _, pair := range [][2]int64{{1, 2}, {9, 10}, {99, 100}, {999_999_999, 1_000_000_000}} {
		if ref.MailKey(pair[0]).SK >= ref.MailKey(pair[1]).SK || session.PendingMember(pair[0]) >= session.PendingMember(pair[1]) {
			t.Errorf("%d does not come before %d", pair[0], pair[1])
		}
	}
}
