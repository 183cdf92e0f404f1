package lane_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
	"laneway/shared/table/faulty"
	"laneway/test/backends"
)

// BenchmarkAccept is the way of a message from its call to its acceptance, on one
// machine without syncs: into a new session, and into one that was used.
func BenchmarkAccept(b *testing.B) {
	for name, used := range map[string]bool{"new session": false, "warm session": true} {
		b.Run(name, func(b *testing.B) {
			calls := faulty.New(backends.Bolt(b), faulty.Config{})
			w := lanetest.New(b, calls)
			w.Queue.Forget()
			for n := 0; b.Loop(); n++ {
				if used {
					w.Accept(fmt.Sprint("r", n))
					b.StopTimer()
					w.End(w.Start(), run.OK)
					w.Settle()
					b.StartTimer()
					continue
				}
				w.Ref.Key = fmt.Sprint("agent:main:", n)
				w.Accept(fmt.Sprint("r", n))
			}
			if !used {
				b.ReportMetric(float64(calls.Calls())/float64(b.N), "calls/op")
			}
		})
	}
}

// BenchmarkAcceptParallel is the same from many callers, each with sessions of its own.
func BenchmarkAcceptParallel(b *testing.B) {
	w := lanetest.New(b, backends.Bolt(b))
	w.Queue.Forget()
	var n atomic.Int64
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			own := *w
			id := n.Add(1)
			own.Ref.Key = fmt.Sprint("agent:main:", id)
			own.Accept(fmt.Sprint("r", id))
		}
	})
}

// BenchmarkClaimCommit is the tables' part of a plain turn: accept, claim, one commit,
// terminal, settling.
func BenchmarkClaimCommit(b *testing.B) {
	calls := faulty.New(backends.Bolt(b), faulty.Config{})
	w := lanetest.New(b, calls)
	w.Queue.Forget()
	for n := 0; b.Loop(); n++ {
		w.Accept(fmt.Sprint("r", n))
		h := w.Start()
		w.End(h, run.OK)
		if err := w.Lanes.Settled(b.Context(), w.Ref, []string{fmt.Sprint("r", n)}, h.Owner()); err != nil {
			b.Fatal(err)
		}
		h.Close()
	}
	b.ReportMetric(float64(calls.Calls())/float64(b.N), "calls/op")
}
