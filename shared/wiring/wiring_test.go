package wiring_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"laneway/shared/push"
	"laneway/shared/push/local"
	"laneway/shared/queue"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/shared/table/tabletest"
	"laneway/shared/wiring"
)

// Nothing is started by Build: no test here ends anything, and nothing is left.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type nowhere struct{}

func (nowhere) Send(context.Context, queue.Lane, string, string, []byte) error { return nil }
func (nowhere) After(context.Context, time.Duration, []byte) error             { return nil }

func ports(store table.Store) wiring.Ports {
	return wiring.Ports{Store: store, Queue: nowhere{}, Timers: nowhere{}, Poster: local.New(local.Config{})}
}

func TestBuild_NeedsItsPorts(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]func(*wiring.Ports){
		"store":  func(p *wiring.Ports) { p.Store = nil },
		"queue":  func(p *wiring.Ports) { p.Queue = nil },
		"timers": func(p *wiring.Ports) { p.Timers = nil },
		"poster": func(p *wiring.Ports) { p.Poster = push.Poster(nil) },
	} {
		p := ports(tabletest.NewModel())
		drop(&p)
		if _, err := wiring.Build(p, wiring.Settings{}); err == nil {
			t.Errorf("built without %s", name)
		}
	}
	if _, err := wiring.Build(ports(tabletest.NewModel()), wiring.Settings{}); err != nil {
		t.Error(err)
	}
}

// TestC6_TheServicesReadPatiently: one throttled read is not the end of what asked.
func TestC6_TheServicesReadPatiently(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	store := faulty.New(tabletest.NewModel(), faulty.Config{At: func(faulty.Call) faulty.Fault {
		if n.Add(1) == 1 {
			return faulty.Throttle
		}
		return faulty.None
	}})
	core, err := wiring.Build(ports(store), wiring.Settings{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.LoadMeta(t.Context(), core.Store, session.Ref{Tenant: "t", Key: "agent:main:x"}); err != nil || n.Load() != 2 {
		t.Errorf("%v after %d reads", err, n.Load())
	}
	if _, err := core.Runner(wiring.RunnerConfig{}); err == nil {
		t.Error("a runner without models and agents")
	}
}
