package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/client"
	"laneway/shared/protocol"
	"laneway/test/mockmodel"
	"laneway/test/serving"
)

func TestMain(m *testing.M) {
	code := m.Run()
	serving.Cleanup()
	os.Exit(code)
}

const (
	soakFunction = 2 * time.Second // an invocation of a runner
	soakEvery    = 5 * time.Second // between two deaths
	soakSteps    = 4               // calls of a turn before its answer: longer than an invocation
)

// soak is a conversation with a gateway that dies again and again.
type soak struct {
	t     *testing.T
	model *mockmodel.Server
	opts  serving.Options

	gaveUp int // turns whose every attempt died before it got anywhere: an end like others

	mu      sync.Mutex
	gateway *serving.Gateway
	deaths  int
}

// TestSoak: a conversation with functions that may last two seconds, on a gateway that
// is killed every five, watched by the reference client: each turn's text is complete,
// numbers are in order, there is one final, and no side effect comes twice. Of a hundred
// turns one may be given up, because three attempts in a row died early. SOAK says how
// long.
func TestSoak(t *testing.T) {
	t.Parallel()
	d, err := time.ParseDuration(os.Getenv("SOAK"))
	if err != nil {
		t.Skip("not run: a conversation while the gateway dies needs SOAK=30m (make soak)")
	}
	s := &soak{t: t, model: mockmodel.New(t)}
	ws := t.TempDir()
	s.opts = serving.Options{
		Data: t.TempDir(),
		Args: []string{
			"--lease", "1s", "--function", soakFunction.String(), "--workspace", ws,
			"--listen", "127.0.0.1:" + strconv.Itoa(serving.FreePort(t)),
		},
		Env: []string{"OPENAI_BASE_URL=" + s.model.URL, "OPENAI_API_KEY=x", "LANEWAY_MODEL=openai/" + mockmodel.Model},
	}
	s.gateway = serving.Start(t, s.opts)
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { s.die(ctx) })
	turns, longest := s.talk(ctx)
	stop()
	wg.Wait()
	s.effects(filepath.Join(ws, "effects.log"), turns)
	t.Logf("%d turns, the longest took %s, %d deaths, %d turns given up", turns, longest.Truncate(time.Millisecond), s.deaths, s.gaveUp)
	if s.gaveUp > max(1, turns/100) {
		t.Errorf("%d of %d turns were given up: more than a starved machine explains", s.gaveUp, turns)
	}
	if turns == 0 || s.deaths == 0 || longest < soakFunction {
		t.Error("too little happened: the test says nothing")
	}
}

// die kills the gateway every five seconds, and starts it again.
func (s *soak) die(ctx context.Context) {
	tick := time.NewTicker(soakEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		if err := s.gateway.Kill(); err != nil {
			s.t.Error(err)
		}
		s.gateway = serving.Start(s.t, s.opts)
		s.deaths++
		s.mu.Unlock()
	}
}

// dial connects, again while the gateway is down.
func (s *soak) dial(ctx context.Context, on func(client.Event)) (*client.Conn, error) {
	for {
		s.mu.Lock()
		url := s.gateway.URL
		s.mu.Unlock()
		c, err := client.Dial(ctx, client.Config{URL: url, Token: serving.Token, Scopes: []string{protocol.ScopeAdmin}, OnEvent: on})
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

// talk makes turn after turn until the time is over; the last one is finished.
func (s *soak) talk(ctx context.Context) (turns int, longest time.Duration) {
	for ctx.Err() == nil {
		began := time.Now()
		s.turn(turns)
		longest = max(longest, time.Since(began))
		turns++
	}
	return turns, longest
}

// turn sends a message and waits for its end, over as many connections as it takes.
func (s *soak) turn(n int) {
	t := s.t
	id := fmt.Sprintf("turn-%d", n)
	want := s.script(id)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	defer cancel()
	for {
		w := &watcher{id: id, last: make(map[string]int64)}
		c, err := s.dial(ctx, w.event)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		raw, err := c.CallFinal(ctx, "agent", protocol.AgentParams{Message: "do " + id + ".", SessionKey: "agent:main:soak", IdempotencyKey: id}, nil)
		c.Close()
		for _, wrong := range w.faults() {
			t.Errorf("%s: %s", id, wrong)
		}
		var refused *client.CallError
		switch {
		case errors.As(err, &refused) && strings.Contains(refused.Err.Message, "no progress"):
			s.gaveUp++
			return
		case errors.As(err, &refused) && !refused.Err.Retryable:
			t.Fatalf("%s refused: %v", id, err)
		case err != nil:
			continue
		}
		var f protocol.Final
		if err := json.Unmarshal(raw, &f); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if f.Status != "ok" || f.Result == nil || len(f.Result.Payloads) != 1 || f.Result.Payloads[0].Text != want {
			t.Errorf("%s ended %s", id, raw)
		}
		return
	}
}

// script is what the model says in a turn: some calls, one after the other, each with a
// side effect of its own, then a text. A call that is asked for again because nobody
// heard it is skipped.
func (s *soak) script(id string) (text string) {
	for i := range soakSteps {
		call := fmt.Sprintf("%s-%d", id, i)
		s.model.Script(mockmodel.Reply{Match: "do " + id + ".", After: i > 0, PauseMs: 300, Calls: []mockmodel.Call{{
			ID: call, Name: "exec", Arguments: `{"command":"sleep 0.3; echo ` + call + ` >> effects.log"}`,
		}}})
	}
	pieces := []string{"this ", "is ", "the ", "whole ", "answer ", "to ", id}
	for _, after := range []bool{true, false} {
		s.model.Script(mockmodel.Reply{Match: "do " + id + ".", After: after, Times: -1, PauseMs: 60, Text: pieces})
	}
	return strings.Join(pieces, "")
}

// effects checks that no call was made twice.
func (s *soak) effects(path string, turns int) {
	b, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	lines := strings.Fields(string(b))
	seen := make(map[string]bool)
	for _, l := range lines {
		if seen[l] {
			s.t.Errorf("%s was done twice", l)
		}
		seen[l] = true
	}
	s.t.Logf("%d side effects in %d turns", len(lines), turns)
}

// watcher looks at the events of a turn on one connection.
type watcher struct {
	id    string
	mu    sync.Mutex
	last  map[string]int64 // by form: a delta's two forms carry one number
	ends  int
	wrong []string
}

func (w *watcher) event(e client.Event) {
	var p struct {
		RunID  string `json:"runId"`
		Seq    int64  `json:"seq"`
		Stream string `json:"stream"`
		Data   struct {
			Phase string `json:"phase"`
		} `json:"data"`
	}
	if json.Unmarshal(e.Payload, &p) != nil || p.RunID != w.id || p.Seq == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.Seq <= w.last[e.Name] {
		w.wrong = append(w.wrong, fmt.Sprintf("%s number %d came behind %d", e.Name, p.Seq, w.last[e.Name]))
	}
	w.last[e.Name] = p.Seq
	if p.Stream == "lifecycle" && (p.Data.Phase == "end" || p.Data.Phase == "error") {
		w.ends++
	}
}

func (w *watcher) faults() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ends > 1 {
		w.wrong = append(w.wrong, fmt.Sprintf("%d ends, numbers up to %v", w.ends, maps.Clone(w.last)))
	}
	return w.wrong
}
