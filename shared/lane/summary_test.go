package lane_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
)

// TestRuntime27_AbortsAndOverflowsAtOnce: while messages become lines of a summary, those
// that are lines already are stopped. Whatever comes first, each message is either ended
// or in the summary, and the session knows each that ended.
func TestRuntime27_AbortsAndOverflowsAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		t.Helper()
		w.Accept("active")
		w.Start()
		accept := func(w *lanetest.World, id string) {
			c := w.Call(id)
			c.Rules = func(context.Context) (lane.Rules, error) {
				return lane.Rules{Mode: lane.Followup, Cap: 1, Drop: lane.DropSummarize}, nil
			}
			if _, err := w.Lanes.Accept(t.Context(), c); err != nil {
				t.Error(err)
			}
		}
		const messages = 12
		accept(w, "r0")
		accept(w, "r1")
		stopped := make([]bool, messages)
		var both sync.WaitGroup
		other := w.Process(nil)
		both.Go(func() {
			for i := 2; i < messages; i++ {
				accept(w, fmt.Sprint("r", i))
			}
		})
		both.Go(func() {
			for i := range messages - 2 {
				ok, err := other.Lanes.StopRun(t.Context(), lane.Stop{Ref: w.Ref, RunID: fmt.Sprint("r", i), Reason: "rpc"})
				if err != nil {
					t.Error(err)
				}
				stopped[i] = ok
			}
		})
		both.Wait()
		m := w.Meta()
		var lines []string
		for _, p := range m.Pending {
			if strings.HasPrefix(p.Run, lane.SummaryPrefix) {
				st, err := run.Load(t.Context(), w.Store, run.Ref{Tenant: m.Tenant, Run: p.Run})
				if err != nil {
					t.Fatal(err)
				}
				if o := st.Input.Overflow; o.Count != len(o.Runs) || st.Input.Message != o.Text() {
					t.Errorf("the summary is %+v and says %q", o, st.Input.Message)
				}
				lines = append(lines, st.Input.Overflow.Runs...)
			}
		}
		some := false
		for i := range messages {
			st := w.Status(fmt.Sprint("r", i))
			ended, line := st.State == run.Ended, slices.Contains(lines, st.Ref.Run)
			if st.State == run.Delivered && !line { // it ends with the summary whose last line it was
				sum, err := run.Load(t.Context(), w.Store, run.Ref{Tenant: m.Tenant, Run: st.Into})
				if err != nil {
					t.Fatal(err)
				}
				ended = sum.State == run.Ended && slices.Equal(sum.Input.Overflow.Runs, []string{st.Ref.Run})
			}
			if stopped[i] && !ended {
				t.Errorf("r%d: stopped, and is %s", i, st.State)
			}
			if ended && (line || !slices.Contains(m.Unsettled, st.Ref.Run)) {
				t.Errorf("r%d: ended, in the summary %v, unsettled %v", i, line, m.Unsettled)
			}
			if st.State == run.Delivered && !line && !ended {
				t.Errorf("r%d: part of a summary that does not have it", i)
			}
			some = some || ended
		}
		if !some {
			t.Error("no stop met a message")
		}
	})
}
