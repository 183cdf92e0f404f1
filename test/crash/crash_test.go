// Package crash kills a gateway at random moments while clients talk to it, and
// then asks whether anything that it had accepted was lost, doubled or disordered.
package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"laneway/shared/client"
	"laneway/shared/protocol"
	"laneway/test/mockmodel"
	"laneway/test/serving"
)

// Settings, by environment: a failed run is repeated with its seed.
const (
	envKills = "LANEWAY_KILLS"
	envSeed  = "LANEWAY_SEED"
)

const clients = 8

func TestMain(m *testing.M) {
	code := m.Run()
	serving.Cleanup()
	os.Exit(code)
}

// told is what a client knows of a run.
type told struct {
	id, session string
	effect      bool // its model asks for a command with a side effect
	accepted    bool // somebody was told that it is
	final       string
}

// world is a gateway that is killed, and who talks to it.
type world struct {
	t     *testing.T
	model *mockmodel.Server
	opts  serving.Options

	gaveUp atomic.Int64 // runs whose every attempt was killed before it got anywhere

	mu      sync.Mutex
	gateway *serving.Gateway
	runs    []*told
}

func number(t *testing.T, name string, def int64) int64 {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return def
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func TestCrash_NothingAcceptedIsLostOrDoubled(t *testing.T) {
	kills := int(number(t, envKills, 5))
	seed := number(t, envSeed, time.Now().UnixNano())
	t.Logf("%s=%d %s=%d", envSeed, seed, envKills, kills)
	rnd := rand.New(rand.NewPCG(uint64(seed), 1))
	w := &world{t: t, model: mockmodel.New(t)}
	data := t.TempDir()
	ws := t.TempDir()
	w.opts = serving.Options{
		Data: data, Args: []string{"--lease", "1s", "--workspace", ws, "--listen", w.port()},
		Env: []string{"OPENAI_BASE_URL=" + w.model.URL, "OPENAI_API_KEY=x", "LANEWAY_MODEL=openai/" + mockmodel.Model},
	}
	w.gateway = serving.Start(t, w.opts)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for n := range clients {
		wg.Go(func() { w.talk(ctx, n) })
	}
	for range kills {
		pause := time.Duration(20+rnd.IntN(400)) * time.Millisecond
		select {
		case <-time.After(pause): // the moment of the kill is what this test is about
		case <-ctx.Done():
		}
		w.kill()
	}
	stop()
	wg.Wait()
	w.check(filepath.Join(ws, "effects.log"))
}

// port picks an address that stays the same over restarts.
func (w *world) port() string {
	return "127.0.0.1:" + strconv.Itoa(serving.FreePort(w.t))
}

func (w *world) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.gateway.Kill(); err != nil {
		w.t.Error(err)
	}
	w.gateway = serving.Start(w.t, w.opts)
}

func (w *world) url() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gateway.URL
}

// dial connects, again while the gateway is down.
func (w *world) dial(ctx context.Context) (*client.Conn, error) {
	for {
		c, err := client.Dial(ctx, client.Config{URL: w.url(), Token: serving.Token, Scopes: []string{protocol.ScopeAdmin}})
		if err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// talk sends one run after another on two sessions of its own until ctx ends, and
// waits for each; when the connection breaks it comes back with the same key.
func (w *world) talk(ctx context.Context, n int) {
	var c *client.Conn
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	for i := 0; ctx.Err() == nil; i++ {
		r := &told{id: fmt.Sprintf("run-%d-%d", n, i), session: fmt.Sprintf("agent:main:crash-%d-%d", n, i%2), effect: i%3 == 0}
		w.mu.Lock()
		w.runs = append(w.runs, r)
		w.mu.Unlock()
		message := "say " + r.id + "."
		if r.effect {
			message = "do " + r.id + "."
			w.model.Script(mockmodel.Reply{Match: message, Times: -1, Calls: []mockmodel.Call{{
				ID: "call-" + r.id, Name: "exec", Arguments: `{"command":"echo ` + r.id + ` >> effects.log"}`,
			}}})
		}
		p := protocol.AgentParams{Message: message, SessionKey: r.session, IdempotencyKey: r.id}
		for ctx.Err() == nil && r.final == "" {
			if c == nil {
				var err error
				if c, err = w.dial(ctx); err != nil {
					return
				}
			}
			raw, err := c.CallFinal(ctx, "agent", p, func(json.RawMessage) { r.accepted = true })
			var refused *client.CallError
			switch {
			case err == nil:
				var f protocol.Final
				if json.Unmarshal(raw, &f) == nil {
					r.final, r.accepted = f.Status, true
				}
			case errors.As(err, &refused):
				switch {
				case refused.Err.Retryable:
				case strings.Contains(refused.Err.Message, "no progress"):
					// Three attempts were killed before their first commit: an end like others.
					r.final, r.accepted = protocol.StatusError, true
					w.gaveUp.Add(1)
				default:
					w.t.Errorf("%s refused: %v", r.id, err)
					r.final = "refused"
				}
			default:
				c.Close()
				c = nil
			}
		}
	}
}
