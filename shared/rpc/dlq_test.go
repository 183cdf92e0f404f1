package rpc_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"laneway/shared/claim"
	"laneway/shared/protocol"
	"laneway/shared/queue"
	"laneway/shared/rpc"
	"laneway/shared/run"
	"laneway/shared/wiring"
)

func (c *client) letters(p obj) protocol.DLQList {
	c.t.Helper()
	var l protocol.DLQList
	c.ok("dlq.list", p, &l)
	return l
}

// TestA2_ADeadWakeUpLosesNothing: a wake-up that failed too often is put aside and can
// be looked at; the tables know its work, and the next look has it done.
func TestA2_ADeadWakeUpLosesNothing(t *testing.T) {
	t.Parallel()
	var off atomic.Bool
	off.Store(true)
	w := setup(t, brokenWhile(&off), settings(func(s *wiring.Settings) {
		s.Times = claim.Times{Orphan: 20 * time.Millisecond, Poll: 10 * time.Millisecond}
	}))
	c := w.user()
	req := c.post("agent", obj{"sessionKey": "s", "message": "hi", "idempotencyKey": "r1"})
	var l protocol.DLQList
	w.until("the wake-up is put aside", func() bool { l = c.letters(obj{}); return len(l.Letters) > 0 })
	d := l.Letters[0]
	if d.Lane != "main" || d.Kind != "wake" || d.Tenant != "default" || d.SessionKey != key || d.Receives != 5 || d.At == 0 || d.ID == "" || l.HasMore {
		t.Errorf("%+v", l)
	}
	off.Store(false)
	watch, err := w.core.Watch(nil, nil)
	must(t, err)
	w.until("a look finds the work", func() bool {
		got, err := watch.Sweep(context.Background(), 0)
		must(t, err)
		return got.Woken > 0
	})
	var f protocol.Final
	into(t, c.answer(req, 2), &f)
	if f.Status != protocol.StatusOK {
		t.Errorf("%+v", f)
	}
	w.idle(key)
	// Its own wake-up finds nothing to do any more.
	var done protocol.DLQDone
	c.ok("dlq.retry", obj{"lane": "main"}, &done)
	if !done.OK || done.Count != 1 || done.Lanes["main"] != 1 {
		t.Errorf("%+v", done)
	}
	if l := c.letters(obj{"lane": "main"}); len(l.Letters) != 0 {
		t.Errorf("%+v", l)
	}
	st, err := run.Load(context.Background(), w.store, run.RefOf("default", "r1"))
	if err != nil || st.Attempt != 1 || w.model.count("hi") != 1 {
		t.Errorf("attempt %d, asked %d times, %v", st.Attempt, w.model.count("hi"), err)
	}
}

func TestDLQ_RetryDoesTheWork(t *testing.T) {
	t.Parallel()
	var off atomic.Bool
	off.Store(true)
	w := setup(t, brokenWhile(&off))
	c := w.user()
	req := c.post("agent", obj{"sessionKey": "s", "message": "hi", "idempotencyKey": "r1"})
	c.post("agent", obj{"sessionKey": "t", "message": "hi", "idempotencyKey": "r2"})
	w.until("both are put aside", func() bool { return len(c.letters(obj{"lane": "main"}).Letters) == 2 })
	if l := c.letters(obj{"limit": 1}); len(l.Letters) != 1 || !l.HasMore {
		t.Errorf("%+v", l)
	}
	if l := c.letters(obj{"lane": "timers"}); len(l.Letters) != 0 {
		t.Errorf("%+v", l)
	}
	off.Store(false)
	var done protocol.DLQDone
	c.ok("dlq.retry", obj{}, &done)
	if done.Count != 2 || len(done.Lanes) != 4 {
		t.Errorf("%+v", done)
	}
	c.answer(req, 2)
	w.idle("agent:main:t")
}

func TestDLQ_PurgeForgetsLetters(t *testing.T) {
	t.Parallel()
	var off atomic.Bool
	off.Store(true)
	w := setup(t, brokenWhile(&off))
	c := w.user()
	c.post("agent", obj{"sessionKey": "s", "message": "hi", "idempotencyKey": "r1"})
	w.until("it is put aside", func() bool { return len(c.letters(obj{}).Letters) == 1 })
	var done protocol.DLQDone
	c.ok("dlq.purge", obj{"lane": "cron"}, &done)
	if done.Count != 0 || len(c.letters(obj{}).Letters) != 1 {
		t.Errorf("of another lane: %+v", done)
	}
	c.ok("dlq.purge", obj{}, &done)
	if done.Count != 1 || len(c.letters(obj{}).Letters) != 0 {
		t.Errorf("%+v", done)
	}
	if m := w.meta(key); len(m.Pending) != 1 {
		t.Errorf("the work is gone: %+v", m)
	}
}

func TestDLQ_IsForOperatorsOfTheInstallation(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	for _, m := range []string{"dlq.list", "dlq.retry", "dlq.purge"} {
		w.scoped(protocol.ScopeRead, protocol.ScopeWrite).fails(m, obj{}, protocol.CodeForbidden, "scope")
		w.stranger().fails(m, obj{}, protocol.CodeInvalidRequest, "default")
		w.user().fails(m, obj{"lane": "other"}, protocol.CodeInvalidRequest, "lane")
	}
	core := *w.core
	core.Dead = nil
	var err error
	w.gw, err = core.Gateway(w.tokens, directory{})
	must(t, err)
	w.user().fails("dlq.list", obj{}, protocol.CodeUnavailable, "--backend aws")
}

// What a timer carries for clients is not shown, and what cannot be read is no error.
func TestDLQ_ShowsNoContent(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_772_366_400_000)
	for body, want := range map[string]protocol.DeadLetter{
		`{"kind":"post","c":"conn","r":"req","f":["c2VjcmV0"]}`:                 {Kind: "post"},
		`{"kind":"wake","t":"acme","k":"agent:main:s","l":"main","r":"asleep"}`: {Kind: "wake", Tenant: "acme", SessionKey: "agent:main:s", Reason: "asleep"},
		`secret`: {Kind: "unreadable"},
	} {
		want.ID, want.Lane, want.Receives, want.At, want.Bytes = "1", "timers", 5, at.UnixMilli(), len(body)
		if got := rpc.DeadLetterRow("", queue.DeadLetter{ID: "1", Body: []byte(body), Receives: 5, At: at}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}
