package lane_test

import (
	"context"
	"errors"
	"testing"

	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// changing makes a call change the session's preferences, after somebody else has done so
// as often as it is told. It counts the tries.
func changing(t *testing.T, w *lanetest.World, c *lane.Call, others int) *int {
	t.Helper()
	tries := 0
	c.With = func(ctx context.Context) ([]table.Op, error) {
		op, err := session.ChangeEntry(ctx, w.Store, w.Ref, func(e *session.Entry) { e.ThinkingLevel = "high" })
		if tries++; tries <= others {
			_, err := session.UpdateEntry(ctx, w.Store, w.Ref, func(e *session.Entry) error { e.InputTokens++; return nil })
			if err != nil {
				t.Error(err)
			}
		}
		return []table.Op{op}, err
	}
	return &tries
}

func entry(t *testing.T, w *lanetest.World) session.Entry {
	t.Helper()
	e, err := session.LoadEntry(t.Context(), w.Store, w.Ref)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestA1_WhatGoesWithAMessageIsWrittenWithIt: also where it is steered, and where others
// wrote in between, whose changes are not lost.
func TestA1_WhatGoesWithAMessageIsWrittenWithIt(t *testing.T) {
	t.Parallel()
	for name, steered := range map[string]bool{"accepted": false, "steered": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				t.Helper()
				if steered {
					w.Accept("r0")
					w.Start()
				}
				c := w.Call("r1")
				tries := changing(t, w, &c, 2)
				c.Rules = func(context.Context) (lane.Rules, error) { return lane.DefaultRules, nil }
				acc, err := w.Lanes.Accept(t.Context(), c)
				if err != nil || acc.Repeat || steered != (w.Status("r1").State == run.Steered) {
					t.Fatalf("%+v, %v", acc, err)
				}
				if e := entry(t, w); e.ThinkingLevel != "high" || e.InputTokens != 2 || *tries < 3 {
					t.Errorf("after %d tries %+v", *tries, e)
				}
			})
		})
	}
}

// TestA3_NothingGoesWithAMessageThatIsNotTaken: a known key, a full queue, a stop that
// came before.
func TestA3_NothingGoesWithAMessageThatIsNotTaken(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		t.Helper()
		w.Accept("r1")
		w.Start()
		c := w.Call("r1")
		changing(t, w, &c, 0)
		if acc, err := w.Lanes.Accept(t.Context(), c); err != nil || !acc.Repeat {
			t.Fatalf("%+v, %v", acc, err)
		}
		one := w.Call("r2")
		one.Rules = func(context.Context) (lane.Rules, error) {
			return lane.Rules{Mode: lane.Followup, Cap: 1, Drop: lane.DropNew}, nil
		}
		if _, err := w.Lanes.Accept(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		two := w.Call("r3")
		two.Rules = one.Rules
		changing(t, w, &two, 0)
		if _, err := w.Lanes.Accept(t.Context(), two); !errors.Is(err, lane.ErrQueueCap) {
			t.Fatal(err)
		}
		if _, err := w.Lanes.StopAll(t.Context(), lane.Stop{Ref: w.Ref, Reason: "rpc", ConnectionID: "conn", FrameAt: 100}); err != nil {
			t.Fatal(err)
		}
		late := w.Call("r4")
		late.ConnectionID, late.FrameAt = "conn", 50
		changing(t, w, &late, 0)
		if acc, err := w.Lanes.Accept(t.Context(), late); err != nil || !acc.Stopped {
			t.Fatalf("%+v, %v", acc, err)
		}
		if e := entry(t, w); e.ThinkingLevel != "" {
			t.Errorf("kept %+v", e)
		}
	})
}
