package lane_test

import (
	"testing"

	"go.uber.org/goleak"

	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
	"laneway/shared/table"
	"laneway/test/backends"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// each runs a test of the lanes over every store.
func each(t *testing.T, f func(t *testing.T, w *lanetest.World)) {
	t.Helper()
	backends.Each(t, func(t *testing.T, store table.Store) {
		f(t, lanetest.New(t, store))
	})
}

func TestARunFromItsAcceptanceToIdle(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		w.Queue.One(t)
		if w.Idle() {
			t.Fatal("idle with a run pending")
		}
		h := w.Start()
		w.End(h, run.OK)
		if w.Idle() {
			t.Fatal("idle before the end was told")
		}
		w.Settle()
		if !w.Idle() {
			t.Fatalf("not idle after settling: %+v", w.Meta())
		}
		w.Queue.None(t)
		if got := w.Ends.Told(); len(got) != 1 || got[0] != "r1" {
			t.Fatalf("told %v", got)
		}
	})
}
