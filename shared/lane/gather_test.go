package lane_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
)

// gathered is how the texts of this test wait.
const gathered = time.Second

// texter sends messages to a session as somebody.
type texter struct {
	w *lanetest.World
}

// send accepts a message of a connection; wait is Call.Gather.
func (x texter) send(id, connection string, wait time.Duration) lane.Accepted {
	x.w.T.Helper()
	c := x.w.Call(id)
	c.ConnectionID, c.Gather = connection, wait
	c.Rules = func(context.Context) (lane.Rules, error) { return lane.DefaultRules, nil }
	acc, err := x.w.Lanes.Accept(x.w.Ctx(), c)
	if err != nil {
		x.w.T.Fatal(err)
	}
	return acc
}

func (x texter) text(id, connection string) run.Disposition {
	x.w.T.Helper()
	return x.send(id, connection, gathered).Status.Disposition
}

// next is what the receiver of a wake-up would do now.
func (x texter) next() lane.Decision {
	return lane.Decide(x.w.Meta(), "main", x.w.Clock.Now(), x.w.Times)
}

// modes are those of the messages that wait.
func (x texter) modes() (out []string) {
	m := x.w.Meta()
	for _, p := range m.Pending {
		out = append(out, p.Run+" "+p.Mode)
	}
	return out
}

// TestRuntime28_TextsOfASenderWaitForMore: each row of the inbound debounce, with what
// waits then and for how long.
func TestRuntime28_TextsOfASenderWaitForMore(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		do    func(x texter)
		modes []string
		waits time.Duration // 0: the first of them starts
	}{
		{"a text finds nobody at work", func(x texter) {
			if d := x.text("a", "c1"); d != (run.Disposition{Kind: "queued", Position: 1, Reason: "debounce"}) {
				x.w.T.Errorf("%+v", d)
			}
		}, []string{"a gather"}, gathered},
		{"it has waited", func(x texter) {
			x.text("a", "c1")
			x.w.Clock.Advance(gathered)
		}, []string{"a gather"}, 0},
		{"another one of the same sender begins the time anew", func(x texter) {
			x.text("a", "c1")
			x.w.Clock.Advance(gathered - time.Millisecond)
			if d := x.text("b", "c1"); d != (run.Disposition{Kind: "queued", Position: 2, Reason: "debounce"}) {
				x.w.T.Errorf("%+v", d)
			}
		}, []string{"a gather", "b gather"}, gathered},
		{"too late is another turn", func(x texter) {
			x.text("a", "c1")
			x.w.Clock.Advance(gathered)
			x.text("b", "c1")
		}, []string{"a gather", "b followup"}, 0},
		{"another sender ends the wait", func(x texter) {
			x.text("a", "c1")
			x.text("b", "c2")
		}, []string{"a gather", "b followup"}, 0},
		{"so does a file or a command of the same one", func(x texter) {
			x.text("a", "c1")
			x.send("b", "c1", 0)
		}, []string{"a gather", "b followup"}, 0},
		{"what comes behind that is not put in front of it", func(x texter) {
			x.text("a", "c1")
			x.send("b", "c1", 0)
			x.text("c", "c1")
		}, []string{"a gather", "b followup", "c followup"}, 0},
		{"a run of its own right waits behind it and ends the wait: nothing is put in front of it", func(x texter) {
			x.text("a", "c1")
			x.w.Accept("own")
			x.text("b", "c1")
		}, []string{"a gather", "own ", "b followup"}, 0},
		{"so does one of a job", func(x texter) {
			x.text("a", "c1")
			c := x.w.Call("job")
			c.Run.Lane, c.Internal = "cron", true
			if _, err := x.w.Lanes.Accept(x.w.Ctx(), c); err != nil {
				x.w.T.Fatal(err)
			}
		}, []string{"a gather", "job "}, 0},
		{"what a stop has ended is nobody, also where its end is not written", func(x texter) {
			x.text("a", "c1")
			if _, err := x.w.Lanes.StopAll(x.w.Ctx(), lane.Stop{Ref: x.w.Ref, Reason: "stop"}); err != nil {
				x.w.T.Fatal(err)
			}
			x.text("b", "c1")
			x.text("c", "c1")
			x.w.Settle()
		}, []string{"b gather", "c gather"}, gathered},
		{"without the setting nothing waits", func(x texter) {
			if d := x.send("a", "c1", 0).Status.Disposition; d.Kind != "started" {
				x.w.T.Errorf("%+v", d)
			}
		}, []string{"a "}, 0},
		{"in a process that remembers the session", func(x texter) {
			x.w.Accept("r")
			h := x.w.Start()
			x.w.End(h, run.OK)
			x.w.Settle()
			x.text("a", "c1")
		}, []string{"a gather"}, gathered},
		{"the cap of the queue does not count them", func(x texter) {
			for i := range lane.DefaultRules.Cap {
				x.text(string(rune('a'+i)), "c1")
			}
			x.send("z", "c1", 0)
			if got := x.modes(); len(got) != lane.DefaultRules.Cap+1 || got[0] != "a gather" {
				x.w.T.Errorf("what waits: %q", got)
			}
		}, nil, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				x := texter{w}
				row.do(x)
				if got := x.modes(); row.modes != nil && !slices.Equal(got, row.modes) {
					t.Errorf("what waits: %q, want %q", got, row.modes)
				}
				want := lane.Decision{Do: lane.Wait, For: row.waits}
				got := x.next()
				if row.waits == 0 {
					want = lane.Decision{Do: lane.Start}
					got.Run.Seq, got.Run.Lane, got.Run.Run, got.Run.Mode = 0, "", "", ""
				}
				if got != want {
					t.Errorf("next is %+v, want %+v", got, want)
				}
			})
		})
	}
}

// TestRuntime28_AtWorkTheQueueDecides: a text that finds a run at work does not wait for
// more, it is steered as its mode says.
func TestRuntime28_AtWorkTheQueueDecides(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r")
		w.Start()
		acc := texter{w}.send("a", "c1", gathered) // the process takes it for idle at first
		if acc.Status.Disposition.Kind != "steered" || acc.Status.Input.QueueMode != "" {
			t.Errorf("%+v, mode %q", acc.Status.Disposition, acc.Status.Input.QueueMode)
		}
	})
}
