package notify_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/connection"
	"laneway/shared/protocol"
	"laneway/shared/push"
	"laneway/shared/queue"
	"laneway/shared/wiring"
	"laneway/test/backends"
)

// line is a transport and a timer queue in the hands of a test.
type line struct {
	mu     sync.Mutex
	posted map[string][]string // by connection
	gone   string              // a connection that is
	slow   string              // a connection that takes nothing
	timers [][]byte
}

func (l *line) Post(_ context.Context, to push.Target, frame []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch to.ConnectionID {
	case l.gone:
		return push.ErrGone
	case l.slow:
		return push.ErrFailed
	}
	if l.posted == nil {
		l.posted = make(map[string][]string)
	}
	l.posted[to.ConnectionID] = append(l.posted[to.ConnectionID], string(frame))
	return nil
}

func (l *line) Close(context.Context, push.Target) error { return nil }

func (l *line) After(_ context.Context, d time.Duration, body []byte) error {
	if err := queue.CheckDelay(d); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timers = append(l.timers, body)
	return nil
}

func (l *line) Send(context.Context, queue.Lane, string, string, []byte) error { return nil }

// TestTell: events reach the operators of a tenant, in their order, and nobody else.
func TestTell(t *testing.T) {
	t.Parallel()
	l := &line{gone: "gone", slow: "slow"}
	core, err := wiring.Build(wiring.Ports{Store: backends.Bolt(t), Queue: l, Timers: l, Poster: l}, wiring.Settings{Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	for id, c := range map[string]struct {
		tenant string
		all    bool
	}{"op": {"acme", true}, "gone": {"acme", true}, "slow": {"acme", true}, "user": {"acme", false}, "other": {"default", true}} {
		must(t, core.Connections.Open(t.Context(), connection.Row{ID: id, Nonce: "n"}))
		must(t, core.Connections.Ready(t.Context(), id, connection.Principal{Tenant: c.tenant}, connection.Client{}))
		if c.all {
			must(t, core.Connections.SubscribeAll(t.Context(), id))
		}
	}
	big := strings.Repeat("x", protocol.MaxFrameOut)
	must(t, core.Notify.Tell(t.Context(), "acme", [][]byte{[]byte("1"), []byte(big), []byte(big), []byte("2")}))
	if len(l.posted) > 0 || len(l.timers) != 2 {
		t.Fatalf("%d posts, %d timers", len(l.posted), len(l.timers))
	}
	for _, body := range l.timers {
		if len(body) > queue.MaxBody {
			t.Errorf("a timer of %d bytes", len(body))
		}
		must(t, core.Notify.HandleTimer(t.Context(), body))
	}
	if got := l.posted["op"]; !slices.Equal(got, []string{"1", big, big, "2"}) || len(l.posted) != 1 {
		t.Errorf("%d frames to the operator, %d connections", len(got), len(l.posted))
	}
	if list, err := core.Connections.Subscribers(t.Context(), "acme", connection.AllSessions); err != nil || len(list) != 2 {
		t.Errorf("%d operators left, %v", len(list), err)
	}
	must(t, core.Notify.Tell(t.Context(), "acme", nil))
	if len(l.timers) != 2 {
		t.Error("a timer of nothing")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
