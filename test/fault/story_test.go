package fault

import (
	"bytes"
	"testing"
	"time"

	"laneway/shared/run"
)

const theKey = "agent:main:s1"

// story is a scenario that is told: a profile without chance but for the order of
// calls, requests, and what goes wrong at which of them.
type story struct {
	t     *testing.T
	c     Config
	ghost *ghost // of the last telling
	sim   *Sim
}

func tell(t *testing.T, p Profile, play func(*Sim), at func(*Sim, *call) bool) *story {
	t.Helper()
	p.Name, p.Sessions, p.Spread = t.Name(), 1, time.Second
	if p.Runners == 0 {
		p.Runners = 3
	}
	if p.Visibility == nil {
		p.Visibility = soon
	}
	st := &story{t: t}
	st.c.script = &script{profile: p, at: at}
	st.c.script.play = func(s *Sim) {
		st.sim, st.ghost = s, s.ghost
		play(s)
	}
	return st
}

// run tells it with a seed, and fails the test where a rule was broken.
func (st *story) run(seed uint64) *Report {
	st.t.Helper()
	c := st.c
	c.Seed, c.Record = seed, true
	r := Run(st.t, c)
	if len(r.Violations) > 0 {
		var b bytes.Buffer
		r.Print(&b)
		st.t.Fatalf("seed %d:\n%s", seed, b.String())
	}
	return r
}

// each tells it with several seeds, and then asks what came of it.
func (st *story) each(seeds uint64, then func(seed uint64, r *Report)) {
	st.t.Helper()
	for seed := range seeds {
		r := st.run(seed)
		if then != nil {
			then(seed, r)
		}
	}
}

// ends is how a run ended.
func (st *story) ends(runID string) run.OutcomeKind {
	r := st.ghost.runs[runID]
	if r == nil || r.end == nil {
		return "never"
	}
	return r.end.Kind
}

// says adds a message that comes at a time.
func says(s *Sim, at time.Duration, runID, mode, plan string) *op {
	o := newMessage(runID, theKey, mode, plan)
	o.at = at
	s.add(o)
	return o
}

// once is true at the first call for which is is.
func once(is func(*Sim, *call) bool) func(*Sim, *call) bool {
	var of *Sim
	return func(s *Sim, c *call) bool {
		if s == of || !is(s, c) {
			return false
		}
		of = s
		return true
	}
}

// TestQueueModes_EveryMessageHasOneOutcome: a message comes in each mode while a run is
// at work, and a process dies before it is accepted, behind that, before what waits is
// taken up, in the middle of the turn, and between the end and the acknowledgement.
func TestQueueModes_EveryMessageHasOneOutcome(t *testing.T) {
	t.Parallel()
	deaths := map[string]func(*Sim, *call) bool{
		"nobody dies": func(*Sim, *call) bool { return false },
		"before accept": func(s *Sim, c *call) bool {
			return (c.kind == kAccept || c.kind == kSteer) && s.ghost.runs["r1"] != nil && s.ghost.runs["r2"] == nil
		},
		"after accept": func(s *Sim, c *call) bool {
			return c.p.slot.role == gateway && c.kind == "" && s.ghost.runs["r2"] != nil && c.ops == nil && !c.read
		},
		"before it is taken up": func(s *Sim, c *call) bool {
			return c.p.slot.role == runner && s.ghost.runs["r2"] != nil && s.ghost.runs["r2"].end == nil &&
				(c.kind == kClaim || c.kind == kCommit || c.kind == kSettled)
		},
		"mid turn":     func(s *Sim, c *call) bool { return c.point == midStream && s.ghost.runs["r2"] != nil },
		"after effect": func(s *Sim, c *call) bool { return c.point == afterToolEffect && s.ghost.runs["r2"] != nil },
		"after the end": func(s *Sim, c *call) bool {
			return c.p.slot.role == runner && s.ghost.runs["r1"] != nil && s.ghost.runs["r1"].end != nil && c.kind != kTerminal
		},
		"before ack": func(s *Sim, c *call) bool {
			return c.point == beforeAck && s.ghost.runs["r2"] != nil && c.p.slot.role == runner
		},
	}
	for _, mode := range []string{"agent", "steer", "followup", "collect", "interrupt"} {
		for name, dies := range deaths {
			if name == "after effect" && (mode == "steer" || mode == "interrupt") {
				continue // the next message comes before the model asks for the tool
			}
			t.Run(mode+", "+name, func(t *testing.T) {
				t.Parallel()
				at := once(dies)
				st := tell(t, Profile{}, func(s *Sim) {
					says(s, 100*time.Millisecond, "r1", "agent", "USU")
					says(s, 3*time.Second, "r2", mode, "U")
					says(s, 3100*time.Millisecond, "r3", mode, "")
				}, func(s *Sim, c *call) bool {
					if !at(s, c) {
						return false
					}
					s.kill(c.p, name)
					return true
				})
				st.each(12, func(seed uint64, r *Report) {
					want := run.OK
					if mode == "interrupt" {
						want = run.Aborted
					}
					if r.Faults["kill"] == 0 && name != "nobody dies" && name != "before it is taken up" {
						t.Errorf("seed %d: nobody died", seed)
					}
					if got := st.ends("r1"); got != want {
						t.Errorf("seed %d: r1 ended %s, want %s", seed, got, want)
					}
					// Who lost its gateway comes again, behind the other, and interrupts it.
					last := "r3"
					if a, b := st.ghost.runs["r2"], st.ghost.runs["r3"]; a != nil && b != nil && a.seq > b.seq {
						last = "r2"
					}
					if got := st.ends(last); got != run.OK {
						t.Errorf("seed %d: %s ended %s", seed, last, got)
					}
					if len(r.Ends) == 0 || sum(r.Ends) != 3 {
						t.Errorf("seed %d: %v", seed, r.Ends)
					}
				})
			})
		}
	}
}

func sum(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}
