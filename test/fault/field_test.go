package fault

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"laneway/shared/lane"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/session"
)

// TestF3_MessagesInTheMiddleOfARunAreAllTaken: five messages from two connections come
// within 200 ms while a run streams. It goes on, and each is in the conversation once,
// in the order of arrival (the kit's own checks say so after every step).
func TestF3_MessagesInTheMiddleOfARunAreAllTaken(t *testing.T) {
	t.Parallel()
	st := tell(t, Profile{Eager: true}, func(s *Sim) {
		says(s, 100*time.Millisecond, "r1", "agent", "SUS")
		for i := range 5 {
			o := says(s, 3*time.Second+time.Duration(i)*40*time.Millisecond, fmt.Sprintf("m%d", i), "steer", "")
			o.conn = s.conns[fmt.Sprintf("conn%d", 1+i%2)]
		}
	}, nil)
	st.each(20, func(seed uint64, _ *Report) {
		if got := st.ends("r1"); got != run.OK {
			t.Errorf("seed %d: the run ended %s", seed, got)
		}
		for i := range 5 {
			if r := st.ghost.runs[fmt.Sprintf("m%d", i)]; r == nil || r.users != 1 || r.end.Kind != run.OK {
				t.Errorf("seed %d: m%d: %+v", seed, i, r)
			}
		}
	})
}

// TestF4_ThawedAfterTakeover: a runner freezes at each kind of call in turn until
// another one has taken over and finished; thawed, it changes nothing.
func TestF4_ThawedAfterTakeover(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{kClaim, kCommit, kStarted, kDone, kTerminal, kRenew, kSettled} {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			at := once(func(_ *Sim, c *call) bool { return c.kind == k && c.p.slot.role == runner })
			st := tell(t, Profile{}, func(s *Sim) {
				says(s, 100*time.Millisecond, "r1", "agent", "LBS")
				says(s, time.Second, "r2", "agent", "U")
			}, func(s *Sim, c *call) bool {
				if !at(s, c) {
					return false
				}
				s.freeze(c.p, 10*time.Minute, string(k))
				return true
			})
			st.each(6, func(seed uint64, r *Report) {
				if k != kCommit && r.Faults["freeze"] != 1 {
					t.Errorf("seed %d: nobody froze", seed)
				}
				if st.ends("r1") != run.OK || st.ends("r2") != run.OK {
					t.Errorf("seed %d: ended %s and %s", seed, st.ends("r1"), st.ends("r2"))
				}
			})
		})
	}
}

// TestF5_RecoveryWithin90Seconds: a holder dies in the middle of a stream, its message
// never comes again, and nothing is ever cleaned up by age. With default settings the
// next claim comes within 90 seconds, of 100 deaths.
func TestF5_RecoveryWithin90Seconds(t *testing.T) {
	t.Parallel()
	recovery(t, 0, 90*time.Second)
}

// TestF5_RecoveryWithin3SecondsOfAShortLease: likewise with leases of a second.
func TestF5_RecoveryWithin3SecondsOfAShortLease(t *testing.T) {
	t.Parallel()
	recovery(t, time.Second, 3*time.Second)
}

func recovery(t *testing.T, lease, most time.Duration) {
	t.Helper()
	st := tell(t, Profile{Eager: true, Visibility: []time.Duration{never}}, func(s *Sim) {
		says(s, 100*time.Millisecond, "r1", "agent", "SU")
		says(s, time.Second, "r2", "agent", "S")
	}, nil)
	st.c.Lease = lease
	var took []time.Duration
	for seed := uint64(0); len(took) < 100; seed++ {
		n := 0
		st.c.script.at = once(func(s *Sim, c *call) bool {
			if c.point != midStream {
				return false
			}
			if n++; n <= int(seed%6) {
				return false
			}
			s.kill(c.p, "mid stream")
			return true
		})
		took = append(took, st.run(seed).Recovered...)
	}
	t.Log(distribution(took))
	for _, d := range took {
		if d > most {
			t.Errorf("recovered after %s, more than %s", d, most)
		}
	}
}

// TestF7_WhatWasQueuedSurvivesRecovery: a run is wedged with nine messages behind it,
// three of them to be collected, and so many that the oldest become a summary. Its
// runner stands still until everything was done by others, and then comes back.
func TestF7_WhatWasQueuedSurvivesRecovery(t *testing.T) {
	t.Parallel()
	at := once(func(s *Sim, c *call) bool { return c.point == afterToolEffect && s.ghost.runs["q9"] != nil })
	st := tell(t, Profile{}, func(s *Sim) {
		limit := int64(7)
		e, err := session.PutEntry(session.Ref{Tenant: session.DefaultTenant, Key: theKey}, session.Entry{QueueCap: &limit, QueueDrop: lane.DropSummarize})
		if err == nil {
			_, err = s.store.tables.Write(t.Context(), e)
		}
		if err != nil {
			t.Fatal(err)
		}
		says(s, 100*time.Millisecond, "r1", "agent", "SSU")
		for i := range 9 {
			mode := "followup"
			if i >= 3 && i < 6 {
				mode = "collect"
			}
			says(s, time.Second+time.Duration(i)*100*time.Millisecond, fmt.Sprintf("q%d", i+1), mode, "")
		}
	}, func(s *Sim, c *call) bool {
		if !at(s, c) {
			return false
		}
		s.freeze(c.p, 30*time.Minute, "wedged")
		return true
	})
	st.each(10, func(seed uint64, r *Report) {
		if r.Faults["freeze"] != 1 {
			t.Errorf("seed %d: nobody froze", seed)
		}
		summarised := 0
		for i := range 9 {
			r := st.ghost.runs[fmt.Sprintf("q%d", i+1)]
			switch {
			case r == nil || r.end == nil || r.end.Kind != run.OK:
				t.Errorf("seed %d: q%d: %+v", seed, i+1, r)
			case strings.HasPrefix(r.into, lane.SummaryPrefix):
				summarised++
			}
		}
		if summarised != 2 {
			t.Errorf("seed %d: %d became a summary, want 2", seed, summarised)
		}
	})
}

// TestF15_AStopDoesNotWaitInTheLane: a run is in the middle of a stream, three messages
// wait, the session is stopped: all end within a second of the answer, those that wait
// before the one that works or with it, no tool begins any more, and the lane is free.
func TestF15_AStopDoesNotWaitInTheLane(t *testing.T) {
	t.Parallel()
	var stop *op
	st := tell(t, Profile{Eager: true}, func(s *Sim) {
		says(s, 100*time.Millisecond, "r1", "agent", "SUUS")
		for i := range 3 {
			says(s, time.Second+time.Duration(i)*50*time.Millisecond, fmt.Sprintf("q%d", i+1), "followup", "U")
		}
		stop = &op{method: "chat.abort", key: theKey, at: 4 * time.Second, params: map[string]any{"sessionKey": theKey}}
		s.add(stop)
		says(s, 5*time.Second+100*time.Millisecond, "after", "agent", "")
	}, nil)
	st.each(20, func(seed uint64, _ *Report) {
		answered := st.ghost.asks[stop.id].at
		for _, id := range []string{"r1", "q1", "q2", "q3"} {
			r := st.ghost.runs[id]
			if st.ends(id) != run.Aborted || r.endAt > answered+time.Second {
				t.Errorf("seed %d: %s ended %s, %s after the answer", seed, id, st.ends(id), r.endAt-answered)
			}
		}
		for key := range st.ghost.calls {
			if !strings.HasPrefix(key, "r1/1/") {
				t.Errorf("seed %d: %s was begun", seed, key)
			}
		}
		if r := st.ghost.runs["after"]; st.ends("after") != run.OK || r.endAt > 6*time.Second {
			t.Errorf("seed %d: the message behind the stop ended %s at %s", seed, st.ends("after"), r.endAt)
		}
	})
}

// TestF15_AStopOfAWaitingRunEndsItAlone: a stop that names a run that waits touches no
// other.
func TestF15_AStopOfAWaitingRunEndsItAlone(t *testing.T) {
	t.Parallel()
	st := tell(t, Profile{Eager: true}, func(s *Sim) {
		says(s, 100*time.Millisecond, "r1", "agent", "SU")
		says(s, time.Second, "r2", "agent", "")
		says(s, time.Second, "r3", "agent", "")
		s.add(&op{method: "chat.abort", key: theKey, runID: "r2", at: 3 * time.Second, params: map[string]any{"sessionKey": theKey, "runId": "r2"}})
	}, nil)
	st.each(20, func(seed uint64, _ *Report) {
		if st.ends("r1") != run.OK || st.ends("r2") != run.Aborted || st.ends("r3") != run.OK {
			t.Errorf("seed %d: ended %s, %s, %s", seed, st.ends("r1"), st.ends("r2"), st.ends("r3"))
		}
	})
}

// TestF18_TheRunnerDiesAndTheWaitEnds: nobody brings the message again. A short wait
// ends as a time-out and gets nothing else; once the run was ended for want of
// progress, a new wait says so.
func TestF18_TheRunnerDiesAndTheWaitEnds(t *testing.T) {
	t.Parallel()
	var short, long *op
	st := tell(t, Profile{Eager: true, Visibility: []time.Duration{never}}, func(s *Sim) {
		says(s, 100*time.Millisecond, "r1", "agent", "K")
		wait := func(at time.Duration, ms int64) *op {
			o := &op{method: "agent.wait", key: theKey, runID: "r1", at: at, params: map[string]any{"runId": "r1", "timeoutMs": ms}}
			s.add(o)
			return o
		}
		short, long = wait(2*time.Second, 30_000), wait(20*time.Minute, 30_000)
	}, nil)
	st.each(10, func(seed uint64, _ *Report) {
		if r := st.ghost.asks[short.id].replies; len(r) != 1 || !strings.Contains(r[0], `"status":"timeout"`) || strings.Contains(r[0], "endedAt") {
			t.Errorf("seed %d: the short wait got %q", seed, r)
		}
		if r := st.ghost.asks[long.id].replies; len(r) != 1 || !strings.Contains(r[0], "no_progress") {
			t.Errorf("seed %d: the later wait got %q", seed, r)
		}
	})
}

// TestF23_ADeathInTheMiddleOfAToolLeavesAValidConversation: before the call's result is
// stored, and with the next message behind it. The kit refuses a request that a
// provider would, and looks at the rows as they are stored.
func TestF23_ADeathInTheMiddleOfAToolLeavesAValidConversation(t *testing.T) {
	t.Parallel()
	for _, stops := range []bool{false, true} {
		t.Run(fmt.Sprint("stopped: ", stops), func(t *testing.T) {
			t.Parallel()
			at := once(func(_ *Sim, c *call) bool { return c.kind == kDone })
			st := tell(t, Profile{}, func(s *Sim) {
				says(s, 100*time.Millisecond, "r1", "agent", "BLB")
				says(s, 5*time.Second, "r2", "agent", "U")
				if stops {
					s.add(&op{method: "chat.abort", key: theKey, runID: "r1", at: 4 * time.Second, params: map[string]any{"sessionKey": theKey, "runId": "r1"}})
				}
			}, func(s *Sim, c *call) bool {
				if !at(s, c) {
					return false
				}
				s.kill(c.p, "before tool record")
				return true
			})
			st.each(12, func(seed uint64, _ *Report) {
				if st.ends("r2") != run.OK {
					t.Errorf("seed %d: the next message ended %s", seed, st.ends("r2"))
				}
			})
		})
	}
}

// TestF30b_AMessageThatAlwaysPanics: a wake-up becomes a dead letter after three
// failures, unless another one ended the run before; the run ends with an error that
// says why, and the next message of the session runs.
func TestF30b_AMessageThatAlwaysPanics(t *testing.T) {
	t.Parallel()
	dead := 0
	st := tell(t, Profile{Receives: 3}, func(s *Sim) {
		says(s, 100*time.Millisecond, "r1", "agent", "X")
		says(s, 2*time.Second, "r2", "agent", "U")
	}, nil)
	st.each(10, func(seed uint64, _ *Report) {
		if r := st.ghost.runs["r1"]; st.ends("r1") != run.Failed || r.end.ErrorKind == "" {
			t.Errorf("seed %d: r1 ended %s", seed, st.ends("r1"))
		}
		if st.ends("r2") != run.OK {
			t.Errorf("seed %d: the next message ended %s", seed, st.ends("r2"))
		}
		dead += len(st.sim.boxes.dead)
	})
	if dead == 0 {
		t.Error("no dead letter at all")
	}
}

// TestF30c_ATimeoutAndThreeRedeliveries: the function ends after the work was begun, and
// its message comes three times more. The run is begun once, no model call of a step
// that was kept is made again, and no effect is.
func TestF30c_ATimeoutAndThreeRedeliveries(t *testing.T) {
	t.Parallel()
	st := tell(t, Profile{}, func(s *Sim) { says(s, 100*time.Millisecond, "r1", "agent", "UUU") }, nil)
	deaths := 0
	st.c.script.at = func(s *Sim, c *call) bool {
		if s.steps == 0 || c.kind == kAccept {
			deaths = 0
		}
		if c.point != afterToolEffect || deaths == 3 {
			return false
		}
		deaths++
		s.boxes.again(s.boxes.old[0])
		s.kill(c.p, "at the end of its time")
		return true
	}
	st.each(10, func(seed uint64, r *Report) {
		if r.Faults["kill"] != 3 {
			t.Errorf("seed %d: %d deaths", seed, r.Faults["kill"])
		}
		out := st.ghost.runs["r1"].end
		if out.Kind != run.OK || out.Steps != 4 || out.ToolCalls != 3 {
			t.Errorf("seed %d: ended %s after %d steps and %d calls", seed, out.Kind, out.Steps, out.ToolCalls)
		}
		for _, k := range st.ghost.calls {
			if k.effects != 1 {
				t.Errorf("seed %d: %s was done %d times", seed, k.key, k.effects)
			}
		}
	})
}

// A test of the test: what Invalid refuses.
func TestInvalid(t *testing.T) {
	t.Parallel()
	call := model.Message{Role: model.Assistant, Content: []model.Block{{Type: model.ToolCall, ID: "a"}}}
	result := model.Message{Role: model.ToolResult, ToolCallID: "a"}
	for _, c := range []struct {
		messages []model.Message
		ok       bool
	}{
		{[]model.Message{call, result}, true},
		{[]model.Message{call}, false},
		{[]model.Message{result}, false},
		{[]model.Message{call, {Role: model.User}, result}, false},
		{[]model.Message{call, result, result}, false},
	} {
		if why := Invalid(c.messages); (why == "") != c.ok {
			t.Errorf("%v: %q", c.messages, why)
		}
	}
}
