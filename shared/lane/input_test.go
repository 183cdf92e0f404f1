package lane_test

import (
	"testing"
	"time"

	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
	"laneway/shared/session"
)

// TestRuntime33_WhatCountsAsInput: what a person wrote moves the time that a session is
// idle since; what nobody wrote does not, but a session begins with it.
func TestRuntime33_WhatCountsAsInput(t *testing.T) {
	t.Parallel()
	at := func(w *lanetest.World, runID string, internal bool) int64 {
		w.T.Helper()
		w.Clock.Advance(time.Minute)
		c := w.Call(runID)
		c.Internal = internal
		if _, err := w.Lanes.Accept(w.Ctx(), c); err != nil {
			w.T.Fatal(err)
		}
		return w.Clock.Now().UnixMilli()
	}
	steer := func(w *lanetest.World, runID string, internal bool) int64 {
		w.T.Helper()
		w.Clock.Advance(time.Minute)
		c := w.Call(runID)
		c.Internal = internal
		if _, steered, err := w.Lanes.Steer(w.Ctx(), c); err != nil || !steered {
			w.T.Fatalf("steered %t, %v", steered, err)
		}
		return w.Clock.Now().UnixMilli()
	}
	for _, row := range []struct {
		name string
		do   func(w *lanetest.World) (want int64)
	}{
		{"a message begins the session", func(w *lanetest.World) int64 { return at(w, "r1", false) }},
		{"a job begins the session", func(w *lanetest.World) int64 { return at(w, "r1", true) }},
		{"a job behind a stop begins it", func(w *lanetest.World) int64 {
			if _, err := w.Lanes.StopAll(w.Ctx(), lane.Stop{Ref: w.Ref, ConnectionID: "c", FrameAt: 1}); err != nil {
				w.T.Fatal(err)
			}
			return at(w, "r1", true)
		}},
		{"a job in a session that was made", func(w *lanetest.World) int64 {
			if _, err := w.Store.Write(w.Ctx(), session.Create(w.Ref, "sid", w.Clock.Now())...); err != nil {
				w.T.Fatal(err)
			}
			made := w.Clock.Now().UnixMilli()
			at(w, "r1", true)
			return made
		}},
		{"a message after a message", func(w *lanetest.World) int64 {
			at(w, "r1", false)
			return at(w, "r2", false)
		}},
		{"a job after a message", func(w *lanetest.World) int64 {
			wrote := at(w, "r1", false)
			at(w, "r2", true)
			return wrote
		}},
		{"a job, in a process that remembers nothing", func(w *lanetest.World) int64 {
			wrote := at(w, "r1", false)
			at(w.Process(nil), "r2", true)
			return wrote
		}},
		{"the end of a run", func(w *lanetest.World) int64 {
			wrote := at(w, "r1", false)
			h := w.Start()
			w.Clock.Advance(time.Minute)
			w.End(h, run.OK)
			return wrote
		}},
		{"a steered message", func(w *lanetest.World) int64 {
			at(w, "r1", false)
			w.Start()
			return steer(w, "r2", false)
		}},
		{"a steer that nobody wrote", func(w *lanetest.World) int64 {
			wrote := at(w, "r1", false)
			w.Start()
			steer(w, "r2", true)
			return wrote
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				if want := row.do(w); w.Meta().LastInput != want {
					t.Errorf("%d, want %d", w.Meta().LastInput, want)
				}
			})
		})
	}
}
