package stream_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"laneway/shared/clock"
	"laneway/shared/connection"
	"laneway/shared/push"
	"laneway/shared/run"
	"laneway/shared/stream"
)

// sink takes everything at once, and tells when.
type sink struct {
	bytes, posts atomic.Int64
	got          chan time.Time
}

func (s *sink) Post(_ context.Context, _ push.Target, b []byte) error {
	s.bytes.Add(int64(len(b)))
	s.posts.Add(1)
	if s.got != nil {
		s.got <- time.Now()
	}
	return nil
}

func (s *sink) Close(context.Context, push.Target) error { return nil }

func benchStream(b *testing.B, p push.Poster, pacing time.Duration) *stream.Stream {
	b.Helper()
	w := newWorld(b, nil)
	b.Cleanup(func() { _ = w.store.Close() })
	ctx := context.Background()
	w.no(w.conns.Open(ctx, connection.Row{ID: "a"}))
	w.no(w.conns.Ready(ctx, "a", connection.Principal{Tenant: tenant}, connection.Client{}))
	svc, err := stream.New(stream.Config{Store: w.store, Poster: p, Connections: w.conns, Clock: clock.System{}, Pacing: pacing})
	w.no(err)
	s, err := svc.Open(ctx, info("a"), 1)
	w.no(err)
	w.no(s.Refresh(ctx)) // waits until the recipients are known
	b.Cleanup(s.Stop)
	return s
}

// BenchmarkFirstFrame is the way of a delta from the provider to the post.
func BenchmarkFirstFrame(b *testing.B) {
	p := &sink{got: make(chan time.Time, 1)}
	s := benchStream(b, p, -1)
	b.ReportAllocs()
	var sum time.Duration
	n := 0
	for b.Loop() {
		if n++; n%(stream.Block-1) == 0 { // without a commit there are no more numbers
			s.Prepare(started).Publish()
			<-p.got
		}
		s.BeginMessage()
		at := time.Now()
		s.Text("Hello")
		sum += (<-p.got).Sub(at)
	}
	b.ReportMetric(float64(sum.Nanoseconds())/float64(b.N), "ns/first-frame")
}

// Benchmark5000Deltas is 100 KB of text in 5,000 deltas as fast as they can be
// said, and its end.
func Benchmark5000Deltas(b *testing.B) {
	text := strings.Repeat("twenty bytes of text", 5000)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		p := &sink{}
		s := benchStream(b, p, 0)
		b.StartTimer()
		for n := range 5000 {
			s.Text(text[n*20 : n*20+20])
		}
		s.Prepare(stream.EndMessage(), finished, final(text)).Publish()
		s.Reply(run.Waiter{ConnectionID: "a"}, []byte(`{}`))
		if left := s.Close(context.Background()); len(left) > 0 {
			b.Fatal("unsent")
		}
		b.ReportMetric(float64(p.bytes.Load()), "bytes")
		b.ReportMetric(float64(p.posts.Load()), "posts")
	}
}

// BenchmarkPlainTurn is the events of a run that says one short text.
func BenchmarkPlainTurn(b *testing.B) {
	w := newWorld(b, nil)
	b.Cleanup(func() { _ = w.store.Close() })
	ctx := context.Background()
	w.no(w.conns.Open(ctx, connection.Row{ID: "a"}))
	w.no(w.conns.Ready(ctx, "a", connection.Principal{Tenant: tenant}, connection.Client{}))
	svc, err := stream.New(stream.Config{Store: w.store, Poster: &sink{}, Connections: w.conns, Clock: clock.System{}})
	w.no(err)
	b.ReportAllocs()
	for b.Loop() {
		s, err := svc.Open(ctx, info("a"), 1)
		w.no(err)
		s.Prepare(started).Publish()
		s.Text("A short answer.")
		s.Prepare(stream.EndMessage(), finished, final("A short answer.")).Publish()
		s.Reply(run.Waiter{ConnectionID: "a"}, []byte(`{}`))
		if left := s.Close(ctx); len(left) > 0 {
			b.Fatal("unsent")
		}
	}
}
