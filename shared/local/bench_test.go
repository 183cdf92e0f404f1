package local_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"testing"

	"laneway/shared/client"
	"laneway/shared/id"
	"laneway/shared/local"
	"laneway/shared/model"
	"laneway/shared/protocol"
)

// instant is a model that answers at once.
type instant struct{}

func (instant) Stream(context.Context, model.Request) iter.Seq2[model.Part, error] {
	return func(yield func(model.Part, error) bool) {
		for n := range 10 {
			if !yield(model.Part{Text: fmt.Sprintf("d%d xxxxxxxxxxxxxxx ", n)}, nil) {
				return
			}
		}
		yield(model.Part{Done: &model.Done{StopReason: "stop"}}, nil)
	}
}

// BenchmarkTurn is a whole turn over the WebSocket, sessions side by side, with an
// instant model and every commit durable.
func BenchmarkTurn(b *testing.B) {
	for _, sessions := range []int{1, 16} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			s, err := local.Open(b.Context(), local.Config{
				Data: b.TempDir(), Listen: "127.0.0.1:0", Token: "t", Log: slog.New(slog.DiscardHandler),
				Model: model.Selected{Provider: instant{}, Name: "instant", Model: "instant", Endpoint: model.Local},
			})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			served := make(chan error, 1)
			go func() { served <- s.Serve(ctx) }()
			b.Cleanup(func() {
				cancel()
				if err := <-served; err != nil {
					b.Error(err)
				}
				if err := s.Close(); err != nil {
					b.Error(err)
				}
			})
			c, err := client.Dial(b.Context(), client.Config{URL: s.URL(), Token: "t", Scopes: []string{protocol.ScopeAdmin}})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(c.Close)
			work := make(chan int)
			errs := make(chan error, sessions)
			b.ResetTimer()
			for n := range sessions {
				go func() {
					for range work {
						_, err := c.CallFinal(context.Background(), "agent", protocol.AgentParams{
							Message: "hi", SessionKey: fmt.Sprintf("agent:main:bench-%d", n), IdempotencyKey: id.UUID(),
						}, nil)
						if err != nil {
							errs <- err
							return
						}
					}
					errs <- nil
				}()
			}
			for n := range b.N {
				work <- n
			}
			close(work)
			for range sessions {
				if err := <-errs; err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
		})
	}
}
