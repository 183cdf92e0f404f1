package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"laneway/shared/clock"
	"laneway/shared/connection"
	"laneway/shared/push"
	"laneway/shared/run"
	"laneway/shared/table/bolt"
)

// gate holds posts until it is opened, and keeps what came through.
type gate struct {
	open chan struct{}
	mu   sync.Mutex
	got  [][]byte
}

func (g *gate) Post(ctx context.Context, _ push.Target, frame []byte) error {
	select {
	case <-g.open:
	case <-ctx.Done():
		return push.ErrFailed
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.got = append(g.got, frame)
	return nil
}

func (g *gate) Close(context.Context, push.Target) error { return nil }

// behindGate runs a test in a bubble with a stream whose only connection, of chat
// or agent form, is behind a gate.
func behindGate(t *testing.T, chat bool, f func(s *Stream, g *gate)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		conns := &connection.Service{Store: store, Clock: clock.System{}}
		if err := conns.Open(t.Context(), connection.Row{ID: "a"}); err != nil {
			t.Fatal(err)
		}
		if err := conns.Ready(t.Context(), "a", connection.Principal{Tenant: "acme"}, connection.Client{}); err != nil {
			t.Fatal(err)
		}
		g := &gate{open: make(chan struct{})}
		svc, err := New(Config{Store: store, Poster: g, Connections: conns, Clock: clock.System{}, Pacing: -1})
		if err != nil {
			t.Fatal(err)
		}
		s, err := svc.Open(t.Context(), Info{
			Ref: run.RefOf("acme", "r"), RunID: "r", SessionKey: "k",
			Origin: &run.Waiter{ConnectionID: "a"}, OriginUsesChat: chat,
		}, 1)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f(s, g)
		s.Stop()
	})
}

func TestS1_WhatIsNotLoggedStaysWithinTheReservedNumbers(t *testing.T) {
	t.Parallel()
	behindGate(t, false, func(s *Stream, g *gate) {
		close(g.open)
		s.mu.Lock()
		s.seq = Block - 1
		s.mu.Unlock()
		for range 10 {
			s.Text("x")
			s.Thinking("y")
			s.Emit("usage", nil)
			synctest.Wait()
		}
		if n := s.NextSeq(); n != 1+Block {
			t.Fatalf("next number %d, reserved below %d", n, 1+Block)
		}
		s.Prepare(EndMessage()).Publish() // the commit reserves more
		s.Text("z")
		synctest.Wait()
		if n := s.NextSeq(); n < 3+Block {
			t.Errorf("next number %d after a commit", n)
		}
		all := string(bytes.Join(g.got, nil))
		if !strings.Contains(all, `"text":"xxxxxxxxxxz"`) || !strings.Contains(all, `"text":"yyyyyyyyyy"`) {
			t.Errorf("frames %s", all)
		}
	})
}

func TestS3_WaitingInformationIsBounded(t *testing.T) {
	t.Parallel()
	behindGate(t, false, func(s *Stream, g *gate) {
		for i := range 5000 {
			s.Emit("usage", map[string]int{"i": i})
		}
		s.Prepare(Agent("lifecycle", nil)).Publish()
		close(g.open)
		s.Close(context.Background())
		if n := len(g.got); n > maxInfo+3 {
			t.Errorf("%d frames", n)
		}
		if last := string(g.got[len(g.got)-2]); !strings.Contains(last, `{"i":4999}`) {
			t.Errorf("the newest is lost: %s", last)
		}
	})
}

func TestS3_ConnectionThatFellTooFarBehindGetsItsReplyOnly(t *testing.T) {
	t.Parallel()
	behindGate(t, false, func(s *Stream, g *gate) {
		for range maxWaiting + 10 {
			s.Prepare(Agent("compaction", nil)).Publish()
		}
		s.Reply(run.Waiter{ConnectionID: "a"}, []byte(`{"type":"res"}`))
		s.Prepare(Agent("lifecycle", nil)).Publish()
		close(g.open)
		s.Close(context.Background())
		if n := len(g.got); n > 2 || string(g.got[n-1]) != `{"type":"res"}` {
			t.Errorf("%d frames, the last %s", n, g.got[n-1])
		}
	})
}

func TestS4_TextOfALongRunStartsOver(t *testing.T) {
	t.Parallel()
	behindGate(t, true, func(s *Stream, g *gate) {
		close(g.open)
		chat := ""
		message := strings.Repeat("m", 100<<10)
		for i := range 12 {
			s.BeginMessage()
			s.Text(fmt.Sprintf("%d:%s", i, message))
			synctest.Wait()
			s.Prepare(EndMessage()).Publish()
			synctest.Wait()
		}
		s.mu.Lock()
		if n := len(s.text.buf); n > maxRunText+200<<10 {
			t.Errorf("%d bytes of text are kept", n)
		}
		s.mu.Unlock()
		for _, raw := range g.got {
			var f struct {
				Event   string
				Payload struct {
					DeltaText string
					Replace   bool
				}
			}
			if err := json.Unmarshal(raw, &f); err != nil {
				t.Fatal(err)
			}
			if f.Event != "chat" {
				continue
			}
			if f.Payload.Replace {
				chat = ""
			}
			chat += f.Payload.DeltaText
		}
		var parts []string
		for i := 6; i < 12; i++ {
			parts = append(parts, fmt.Sprintf("%d:%s", i, message))
		}
		if want := strings.Join(parts, "\n\n"); chat != want {
			t.Errorf("a client shows %d bytes, %.20q, want %d", len(chat), chat, len(want))
		}
	})
}
