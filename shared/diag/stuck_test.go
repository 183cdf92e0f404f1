package diag_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"laneway/shared/claim"
	"laneway/shared/diag"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

const tick = 20 * time.Second

// TestF8_ADeadOwnerIsNoWork: the session says that it processes something, whose owner
// is dead: it is stuck, whatever was written about the work, and its lane is released.
// With a live claim and a fresh sign of life the same session is left alone.
func TestF8_ADeadOwnerIsNoWork(t *testing.T) {
	t.Parallel()
	for name, live := range map[string]bool{"dead": false, "live": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b *bench) {
				b.Accept("r1")
				p := b.World
				if !live {
					p = b.Frozen()
				}
				h := p.Start()
				h.Working(session.Work{Kind: session.WorkModel, Limit: 10 * time.Hour})
				b.commit(h)
				b.Accept("r2")
				b.Queue.Take()
				if live {
					b.live(10 * minute)
					h.Progress(session.ProgressStream)
					b.commit(h)
					b.look()
					b.quiet("a live run")
					b.Queue.None(t)
					return
				}
				b.Clock.Advance(3 * minute)
				b.look()
				events := b.ops.take()
				e := b.one(events, stuck)
				if e.str("classification") != "stale_session_state" || e.str("reason") != "queued_work_without_active_run" || e.num("queueDepth") != 1 ||
					e.str("state") != "processing" || e.str("activeWorkKind") != "model_call" || e.num("lastProgressAgeMs") != 180_000 {
					t.Errorf("%+v", e)
				}
				done := b.one(events, "session.recovery.completed")
				if done.str("status") != "released" || done.str("action") != "release_lane" || done.str("outcomeReason") != "stale_lane_task" || done.num("released") != 1 {
					t.Errorf("%+v", done)
				}
				w := b.Queue.One(t)
				if w.Group != w.Dedup || w.Ref() != b.Ref {
					t.Errorf("%+v", w)
				}
				if n := b.stuckCount(); n != 1 {
					t.Errorf("StuckSessions %v", n)
				}
				// Whoever gets the wake-up goes on with the run.
				h = b.Resume()
				b.End(h, run.OK)
				b.Settle()
				if m := b.Meta(); len(m.Pending) != 1 || m.Active != "" {
					t.Errorf("%+v", m)
				}
			})
		})
	}
}

// TestStuck73_WarningsBackOff: warnings come at 120, 240, 480, 960 s, recovery is tried
// at every look; the metric is written at every look that found something.
func TestStuck73_WarningsBackOff(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.Accept("r1")
		began := b.Clock.Now()
		var warned []time.Duration
		looks, tried := 0, 0
		for b.Clock.Now().Sub(began) < 1000*s {
			before := b.log.Count("msg=session.recovery.completed")
			b.look()
			for _, e := range b.ops.take() {
				if e.Name == stuck {
					warned = append(warned, b.Clock.Now().Sub(began))
				}
			}
			if b.Clock.Now().Sub(began) >= 2*minute {
				looks++
				tried += b.log.Count("msg=session.recovery.completed") - before
				if n := b.stuckCount(); n != 1 {
					t.Errorf("at %v: StuckSessions %v", b.Clock.Now().Sub(began), n)
				}
			} else if b.metrics.Len() > 0 {
				t.Errorf("at %v: a metric", b.Clock.Now().Sub(began))
			}
			b.Clock.Advance(tick)
		}
		if want := []time.Duration{120 * s, 240 * s, 480 * s, 960 * s}; !slices.Equal(warned, want) {
			t.Errorf("warned at %v, want %v", warned, want)
		}
		if tried != looks {
			t.Errorf("%d recoveries at %d looks", tried, looks)
		}
	})
}

// Another process that looks remembers the warnings too, and of two looks at once one
// warns.
func TestStuck_WarningsAreRememberedInTheTables(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.Accept("r1")
		b.Clock.Advance(2 * minute)
		other, err := diag.New(diag.Config{Store: b.Store, Lanes: b.Lanes, Times: b.Times, Clock: b.Clock, Operators: b.ops})
		must(t, err)
		b.look()
		b.one(b.ops.take(), stuck)
		b.Clock.Advance(tick)
		_, err = other.Sweep(t.Context(), 0)
		must(t, err)
		if got := namesOf(b.ops.take()); slices.Contains(got, stuck) {
			t.Errorf("warned again: %v", got)
		}
	})
}

// Any progress begins the warnings anew; a message that arrives is none.
func TestStuck_ArrivingMessagesAreNoProgress(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.Accept("r1")
		for i := range 12 {
			b.Clock.Advance(10 * s)
			b.Accept("more-" + string(rune('a'+i)))
		}
		b.look()
		if e := b.one(b.ops.take(), stuck); e.num("ageMs") != 120_000 || e.num("queueDepth") != 13 {
			t.Errorf("%+v", e)
		}
		h := b.Frozen().Start() // somebody began and died: it is another standstill
		_ = h
		b.Clock.Advance(2 * minute)
		b.Accept("later")
		b.look()
		if e := b.one(b.ops.take(), stuck); e.num("ageMs") != 120_000 || e.str("activeWorkKind") != "embedded_run" {
			t.Errorf("%+v", e)
		}
	})
}

// TestStuck_SkipReasons: what only looks stuck is left alone, and does not count.
func TestStuck_SkipReasons(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set    func(b *bench)
		cap    int
		reason string
		counts float64
	}{
		"a wake-up is on its way": {func(b *bench) { b.look(); b.ops.take(); b.stuckCount() }, 8, "already_in_flight", 1},
		"its lane is full": {func(b *bench) {
			other := *b.World
			other.Ref.Key = "agent:main:other"
			other.Accept("busy")
			other.Start()
			b.Clock.Advance(s)
		}, 1, "global_lane_wait", 0},
		"a command has the claim": {func(b *bench) {
			p := b.Frozen()
			h := p.Start()
			must(b.t, h.Commit(b.Ctx(), claim.Tx{Release: true}))
			b.Clock.Advance(4 * minute)
			p.Clock.Advance(4 * minute)
			_, err := p.Claims.Command(b.Ctx(), b.Ref, 0)
			must(b.t, err)
		}, 8, "deferred_maintenance_wait", 0},
		"somebody tells the end": {func(b *bench) {
			h := b.Frozen().Start()
			b.End(h, run.OK)
			b.Clock.Advance(3 * minute)
			_, err := b.Store.Write(b.Ctx(), table.Op{
				Kind: table.Update, Key: run.RefOf(b.Ref.Tenant, "r1").StatusKey(), If: table.Exists(),
				Set: []table.SetOp{{Path: table.P(run.AttrOriginLease), Value: b.Clock.Now().Add(s).UnixMilli()}},
			})
			must(b.t, err)
		}, 8, "active_reply_work", 0},
		"more messages are waited for": {func(b *bench) {
			_, err := b.Store.Write(b.Ctx(), table.Op{
				Kind: table.Update, Key: b.Ref.MetaKey(), If: table.Exists(),
				Set: []table.SetOp{{Path: table.P(session.AttrDebounce), Value: b.Clock.Now().Add(s).UnixMilli()}},
			})
			must(b.t, err)
		}, 8, "active_lane_task", 0},
		"it has no id": {func(b *bench) {
			_, err := b.Store.Write(b.Ctx(), table.Op{
				Kind: table.Update, Key: b.Ref.MetaKey(), If: table.Exists(), Remove: []table.Path{table.P(session.AttrSessionID)},
			})
			must(b.t, err)
		}, 8, "missing_session_ref", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b *bench) {
				b.Accept("r1")
				b.Accept("r2")
				b.Clock.Advance(3 * minute)
				c.set(b)
				b.Queue.Take()
				b.look()
				if n := b.log.Count("status=skipped"); n != 1 || b.log.Count("outcomeReason="+c.reason) != 1 {
					t.Errorf("%d skipped, none as %s", n, c.reason)
				}
				if n := b.stuckCount(); n != c.counts {
					t.Errorf("StuckSessions %v, want %v", n, c.counts)
				}
				if got := namesOf(b.ops.take()); slices.ContainsFunc(got, func(n string) bool { return strings.Contains(n, "recovery") }) {
					t.Errorf("operators need not see %v", got)
				}
			}, caps(c.cap))
		})
	}
}

// A look that comes late acts on nothing: the machine stood still, not the sessions.
func TestStuck_ALateLookOnlyTells(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.Accept("r1")
		h := b.Start()
		h.Working(session.Work{Kind: session.WorkModel})
		b.live(7 * minute)
		b.lookLate(time.Second)
		if got := namesOf(b.ops.take()); !slices.Equal(got, []string{stalled}) {
			t.Errorf("%v", got)
		}
		if b.Meta().Cancel != "" {
			t.Error("the run was interrupted")
		}
		b.lookLate(time.Second - 1)
		b.one(b.ops.take(), "session.recovery.completed")
	})
}

func TestStuck_OffOnlySweeps(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.Accept("r1")
		b.Queue.Take()
		b.Clock.Advance(time.Hour)
		if got := b.look(); got.Woken != 1 {
			t.Errorf("%+v", got)
		}
		b.quiet("off")
		if n := b.stuckCount(); n != 0 {
			t.Errorf("StuckSessions %v", n)
		}
	}, func(c *diag.Config) { c.Thresholds.Off = true })
}

// Sessions that only test whether all is well are helped, and not told about.
func TestStuck_ProbesAreNotToldAbout(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		call := b.Call("r1")
		call.Run.Input.SessionID = "probe-1"
		_, err := b.Lanes.Accept(t.Context(), call)
		must(t, err)
		b.Queue.Take()
		b.Clock.Advance(3 * minute)
		b.look()
		b.Queue.One(t)
		b.quiet("a probe")
		if b.log.Count("msg=session.stuck") != 0 {
			t.Error("logged")
		}
	})
}

// The log names no session by its key: it may say who somebody is.
func TestStuck_TheLogKeepsKeysToItself(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.Accept("r1")
		b.Clock.Advance(3 * minute)
		b.look()
		if b.log.Count("msg=session.stuck") != 1 || b.log.Count("session="+b.Ref.Hash()) == 0 || b.log.Count(b.Ref.Key) != 0 {
			t.Error("log")
		}
		if e := b.ops.take()[0]; e.str("sessionKey") != b.Ref.Key || e.str("sessionId") == "" {
			t.Errorf("%+v", e)
		}
	})
}
