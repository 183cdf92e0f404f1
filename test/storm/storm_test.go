package storm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
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

// Settings, by environment: how long it blows, and the seed of one that failed.
const (
	envStorm = "LANEWAY_STORM"
	envSeed  = "LANEWAY_SEED"
)

const (
	clients  = 40
	sessions = 10
	// budgetMs is the limit of a run: what stalls ends with it.
	budgetMs = 6000
	// calm is how long what waits at the end may take.
	calm = 4 * time.Minute
)

func TestMain(m *testing.M) {
	code := m.Run()
	serving.Cleanup()
	os.Exit(code)
}

// message is one that a client wrote.
type message struct {
	id, session, mode string
	client, n         int
	accepted          bool
	refused           string
	first             string // what its sender was told at once
	outcome           string
}

func (m *message) marker() string { return fmt.Sprintf("[c%d n%d]", m.client, m.n) }

type storm struct {
	t     *testing.T
	g     *serving.Gateway
	plan  *plan
	seed  uint64
	mu    sync.Mutex
	all   []*message
	conns []*client.Conn
	seen  []*screen
}

// TestStorm_EveryMessageIsAccountedFor: each message has exactly one outcome, and the
// same one whenever it is asked for; its sender's screen is told its end once; a
// client's messages are in a conversation in the order in which it sent them, each at
// most once; and no text is twice on any screen.
func TestStorm_EveryMessageIsAccountedFor(t *testing.T) { //nolint:paralleltest // it takes the machine
	length, err := time.ParseDuration(cmp.Or(os.Getenv(envStorm), "3s"))
	if err != nil {
		t.Fatalf("%s: %v", envStorm, err)
	}
	seed := uint64(time.Now().UnixNano())
	if v := os.Getenv(envSeed); v != "" {
		if seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("%s: %v", envSeed, err)
		}
	}
	t.Logf("%s=%d %s=%s: %d clients, %d sessions", envSeed, seed, envStorm, length, clients, sessions)
	model := mockmodel.New(t)
	s := &storm{t: t, plan: newPlan(seed), seed: seed}
	model.Choose(s.plan.reply)
	s.g = serving.Start(t, serving.Options{
		Env: []string{"OPENAI_BASE_URL=" + model.URL, "OPENAI_API_KEY=x", "LANEWAY_MODEL=openai/" + mockmodel.Model},
	})
	s.connect()
	s.settings()
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var wg sync.WaitGroup
	for n := range clients {
		wg.Go(func() { s.write(ctx, n) })
	}
	wg.Wait()
	s.judge()
}

func sessionKey(n int) string { return fmt.Sprintf("agent:main:storm-%d", n) }

// connect makes the clients; each listens to two sessions beside its own runs.
func (s *storm) connect() {
	for n := range clients {
		scr := newScreen()
		c, err := client.Dial(s.t.Context(), client.Config{
			URL: s.g.URL, Token: serving.Token, Scopes: []string{protocol.ScopeAdmin}, OnEvent: scr.take,
		})
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(c.Close)
		s.conns, s.seen = append(s.conns, c), append(s.seen, scr)
		for i := range 2 {
			s.call(c, "sessions.messages.subscribe", map[string]any{"key": sessionKey((n + i*3) % sessions)}, nil)
		}
	}
}

// settings gives the sessions queues of different kinds.
func (s *storm) settings() {
	drops := []string{"old", "new", "summarize"}
	for n := range sessions {
		s.call(s.conns[0], "sessions.patch", map[string]any{
			"key": sessionKey(n), "queueCap": 3 + n, "queueDrop": drops[n%3], "queueDebounceMs": 50 * (n % 4),
		}, nil)
	}
}

func (s *storm) call(c *client.Conn, method string, params, out any) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), calm)
	defer cancel()
	if err := c.Call(ctx, method, params, out); err != nil {
		s.t.Fatalf("%s: %v", method, err)
	}
}

var modes = []string{"", "steer", "steer", "followup", "collect", "collect", "interrupt", "agent"}

// write sends messages until the storm is over.
func (s *storm) write(ctx context.Context, n int) {
	rnd := rand.New(rand.NewPCG(s.seed, uint64(n)))
	for i := 0; ctx.Err() == nil; i++ {
		m := &message{
			id: fmt.Sprintf("c%d-%d", n, i), client: n, n: i,
			session: sessionKey(rnd.IntN(sessions)), mode: modes[rnd.IntN(len(modes))],
		}
		s.send(m)
		s.mu.Lock()
		s.all = append(s.all, m)
		s.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(300+rnd.IntN(2500)) * time.Millisecond): // people type
		}
	}
}

func (s *storm) send(m *message) {
	text := m.marker() + " please answer"
	var err error
	var out struct {
		Disposition protocol.Disposition `json:"disposition"`
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), calm)
	defer cancel()
	if m.mode == "agent" {
		err = s.conns[m.client].Call(ctx, "agent", map[string]any{"sessionKey": m.session, "message": text, "idempotencyKey": m.id, "timeout": budgetMs / 1000}, &out)
	} else {
		p := map[string]any{"sessionKey": m.session, "message": text, "idempotencyKey": m.id, "timeoutMs": budgetMs}
		if m.mode != "" {
			p["queueMode"] = m.mode
		}
		err = s.conns[m.client].Call(ctx, "chat.send", p, &out)
	}
	var refused *client.CallError
	switch {
	case err == nil:
		m.accepted, m.first = true, out.Disposition.Kind
	case errors.As(err, &refused):
		m.refused = fmt.Sprint(cmp.Or(refused.Err.Details["reason"], any(refused.Err.Code)))
	default:
		s.t.Errorf("%s: %v", m.id, err)
	}
}

// judge waits for what waits and looks at everything.
func (s *storm) judge() {
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for _, m := range s.all {
				if m.client == c && m.accepted {
					s.settle(m)
				}
			}
		})
	}
	wg.Wait()
	s.screens()
	for n := range sessions {
		s.conversation(sessionKey(n))
	}
	s.table()
}

// wait asks for a run's end until it is there.
func (s *storm) wait(m *message) protocol.Wait {
	ctx, cancel := context.WithTimeout(s.t.Context(), calm)
	defer cancel()
	for {
		var w protocol.Wait
		if err := s.conns[m.client].Call(ctx, "agent.wait", map[string]any{"runId": m.id, "timeoutMs": 1500}, &w); err != nil {
			s.t.Errorf("%s: %v", m.id, err)
			return w
		}
		if w.EndedAt != 0 {
			return w
		}
		select {
		case <-ctx.Done():
			s.t.Errorf("%s (%s) never ended: %+v", m.id, m.mode, w)
			return w
		case <-time.After(200 * time.Millisecond): // a chat turn that waits is answered at once
		}
	}
}

func (s *storm) settle(m *message) {
	first := s.wait(m)
	again := s.wait(m)
	a, _ := json.Marshal(first)
	b, _ := json.Marshal(again)
	if string(a) != string(b) {
		s.t.Errorf("%s has two outcomes:\n%s\n%s", m.id, a, b)
	}
	if first.Disposition == nil {
		s.t.Errorf("%s: nobody says what became of it: %s", m.id, a)
		return
	}
	m.outcome = first.Disposition.Kind
	switch {
	case m.outcome == "started" || m.outcome == "steered" || m.outcome == "collected" || m.outcome == "summarised":
		m.outcome += ", " + first.Status
		if first.StopReason == "superseded" {
			m.outcome += " (superseded)"
		}
	case first.Status == "ok":
		s.t.Errorf("%s was %s and is ok: %s", m.id, m.outcome, a)
	}
}

// screens are judged by what they drew, and by the ends that they were told.
func (s *storm) screens() {
	for n, scr := range s.seen {
		for _, p := range scr.problems() {
			s.t.Errorf("screen %d: %s", n, p)
		}
	}
	deadline := time.Now().Add(20 * time.Second)
	for _, m := range s.all {
		if !m.accepted || m.mode == "agent" {
			continue
		}
		for s.seen[m.client].ended(m.id) == 0 && time.Now().Before(deadline) {
			<-time.After(50 * time.Millisecond) // what could not be posted in time comes later
		}
		if got := s.seen[m.client].ended(m.id); got != 1 {
			s.t.Errorf("%s (%s, %s): its sender's screen was told %d ends", m.id, m.mode, m.outcome, got)
		}
	}
}

var marker = regexp.MustCompile(`\[c(\d+) n(\d+)\]`)

// conversation judges the order of a session's messages, client by client.
func (s *storm) conversation(key string) {
	var texts []string
	before := map[string]any{"sessionKey": key, "limit": 1000, "maxChars": 100000}
	for {
		var h protocol.History
		s.call(s.conns[0], "chat.history", before, &h)
		var page []string
		for _, row := range h.Messages {
			if row.Role == "user" {
				page = append(page, mockmodel.Text(row.Content))
			}
		}
		texts = append(page, texts...)
		if !h.HasMore {
			break
		}
		before["offset"] = h.NextOffset
	}
	last, seen := map[string]int{}, map[string]bool{}
	for _, text := range texts {
		for _, f := range marker.FindAllStringSubmatch(text, -1) {
			n, _ := strconv.Atoi(f[2])
			if seen[f[0]] {
				s.t.Errorf("%s: %s is in the conversation twice", key, f[0])
			}
			if prev, ok := last[f[1]]; ok && n < prev {
				s.t.Errorf("%s: message %d of client %s comes after %d", key, n, f[1], prev)
			}
			seen[f[0]], last[f[1]] = true, max(last[f[1]], n)
		}
	}
	for _, m := range s.all {
		if m.session != key {
			continue
		}
		switch {
		case !m.accepted || strings.HasPrefix(m.outcome, "dropped"):
			if seen[m.marker()] {
				s.t.Errorf("%s (%s%s) reached the conversation", m.id, m.refused, m.outcome)
			}
		case strings.HasSuffix(m.outcome, ", ok") && !strings.HasPrefix(m.outcome, "summarised") && !seen[m.marker()]:
			s.t.Errorf("%s is %s and not in the conversation", m.id, m.outcome)
		}
	}
}

// table prints what became of everything.
func (s *storm) table() {
	rows := map[string]map[string]int{}
	var columns []string
	for _, m := range s.all {
		out := m.outcome
		if !m.accepted {
			out = "refused: " + m.refused
		}
		mode := cmp.Or(m.mode, "default")
		if rows[out] == nil {
			rows[out] = map[string]int{}
		}
		rows[out][mode]++
		if !slices.Contains(columns, mode) {
			columns = append(columns, mode)
		}
	}
	slices.Sort(columns)
	var b strings.Builder
	fmt.Fprintf(&b, "%d messages by mode and outcome\n%-28s", len(s.all), "outcome")
	for _, c := range columns {
		fmt.Fprintf(&b, "%11s", c)
	}
	outs := make([]string, 0, len(rows))
	for out := range rows {
		outs = append(outs, out)
	}
	slices.Sort(outs)
	for _, out := range outs {
		fmt.Fprintf(&b, "\n%-28s", out)
		for _, c := range columns {
			fmt.Fprintf(&b, "%11d", rows[out][c])
		}
	}
	fmt.Fprintf(&b, "\nrequests to the model:")
	met := s.plan.counts()
	for _, k := range []string{fine, limited, busy, stalled, cut, empty, overflow} {
		fmt.Fprintf(&b, " %s %d,", k, met[k])
	}
	s.t.Log(strings.TrimSuffix(b.String(), ","))
}
