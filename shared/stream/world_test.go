package stream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"laneway/shared/clock"
	"laneway/shared/connection"
	"laneway/shared/push"
	"laneway/shared/run"
	"laneway/shared/stream"
	"laneway/shared/table"
	"laneway/shared/table/bolt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	tenant  = "acme"
	sessKey = "agent:main:s1"
	runID   = "run-1"
)

// seeded gives a source and prints its seed when the test fails.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(&shared{src: rand.NewPCG(seed, 1)})
}

// shared is a source for a test and the wire of its world.
type shared struct {
	mu  sync.Mutex
	src rand.Source
}

func (s *shared) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.src.Uint64()
}

// world is a service over a real store, with clients behind a wire of our own. It
// lives in a bubble: times are exact.
type world struct {
	t     testing.TB
	store *bolt.Store
	conns *connection.Service
	wire  *wire
	svc   *stream.Service
}

// inWorld runs a test in a bubble.
func inWorld(t *testing.T, set func(*stream.Config), f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, set)
		defer w.store.Close()
		f(w)
	})
}

func newWorld(tb testing.TB, set func(*stream.Config)) *world {
	tb.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(tb.TempDir(), "db"), NoSync: true})
	if err != nil {
		tb.Fatal(err)
	}
	w := &world{
		t: tb, store: store,
		conns: &connection.Service{Store: store, Clock: clock.System{}},
		wire:  &wire{t: tb, clients: map[string]*client{}},
	}
	c := stream.Config{Store: store, Poster: w.wire, Connections: w.conns, Clock: clock.System{}}
	if set != nil {
		set(&c)
	}
	if w.svc, err = stream.New(c); err != nil {
		tb.Fatal(err)
	}
	return w
}

func (w *world) no(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// connect makes a ready connection.
func (w *world) connect(id, tenant string, caps ...string) *client {
	w.t.Helper()
	ctx := w.t.Context()
	w.no(w.conns.Open(ctx, connection.Row{ID: id, Nonce: "n"}))
	w.no(w.conns.Ready(ctx, id, connection.Principal{Tenant: tenant}, connection.Client{Caps: caps}))
	return w.wire.client(id)
}

func (w *world) subscribe(id, key string) {
	w.t.Helper()
	w.no(w.conns.Subscribe(w.t.Context(), id, key))
}

func info(origin string) stream.Info {
	i := stream.Info{
		Ref: run.RefOf(tenant, runID), RunID: runID, SessionKey: sessKey, SessionID: "sid-1", AgentID: "main", Lane: "main",
	}
	if origin != "" {
		i.Origin = &run.Waiter{ConnectionID: origin}
	}
	return i
}

// open opens the stream of a first attempt, and waits until its recipients are
// known.
func (w *world) open(i stream.Info) *stream.Stream {
	w.t.Helper()
	s, err := w.svc.Open(w.t.Context(), i, 1)
	w.no(err)
	synctest.Wait()
	return s
}

// commit does what the loop does with a batch.
func (w *world) commit(b *stream.Batch) {
	w.t.Helper()
	_, err := w.store.Write(w.t.Context(), b.Op())
	w.no(err)
	b.Publish()
}

func (w *world) log(after int64) []stream.Logged {
	w.t.Helper()
	list, err := stream.Log(w.t.Context(), w.store, run.RefOf(tenant, runID), after)
	w.no(err)
	return list
}

func (w *world) gone(id string) bool {
	w.t.Helper()
	_, err := w.store.Get(w.t.Context(), table.Key{Table: table.Connections, PK: id, SK: "META"})
	return err != nil
}

// wire is a transport whose latency and faults are the test's.
type wire struct {
	t  testing.TB
	mu sync.Mutex

	clients map[string]*client
	latency func(id string) time.Duration
	// fault is asked before a post: what it gives is the answer; delivered says
	// whether the frame arrives nevertheless.
	fault func(id string, n int, frame []byte) (err error, delivered bool)
	posts int
}

// errHang makes a post wait until its context ends.
var errHang = fmt.Errorf("%w: no answer", push.ErrFailed)

func (w *wire) client(id string) *client {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.clients[id]
	if c == nil {
		c = &client{t: w.t, id: id, items: map[string]string{}, thoughts: map[int]string{}}
		w.clients[id] = c
	}
	return c
}

func (w *wire) Post(ctx context.Context, to push.Target, frame []byte) error {
	c := w.client(to.ConnectionID)
	w.mu.Lock()
	w.posts++
	c.posts++
	n := c.posts
	if c.inFlight++; c.inFlight > 1 {
		w.t.Errorf("%d posts in flight to %s", c.inFlight, c.id)
	}
	var wait time.Duration
	if w.latency != nil {
		wait = w.latency(c.id)
	}
	var err error
	delivered := true
	if w.fault != nil {
		err, delivered = w.fault(c.id, n, frame)
	}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		c.inFlight--
		w.mu.Unlock()
	}()
	if wait > 0 {
		if serr := clock.Sleep(ctx, clock.System{}, wait); serr != nil {
			return fmt.Errorf("%w: %w", push.ErrFailed, serr)
		}
	}
	if delivered {
		w.mu.Lock()
		c.receive(frame)
		w.mu.Unlock()
	}
	if err == errHang { //nolint:errorlint // it is a sign, not an error
		<-ctx.Done()
	}
	return err
}

func (w *wire) Close(context.Context, push.Target) error { return nil }

// client reads frames as a client does.
type client struct {
	t        testing.TB
	id       string
	inFlight int
	posts    int

	got      []frame
	bytes    int
	maxFrame int
	seq      int64
	items    map[string]string // assistant text by item id
	order    []string
	deltas   string // assistant deltas, one after another
	chat     string // by replace and deltaText
	message  string // by message, where it was there
	thoughts map[int]string
	replaced int
}

type frame struct {
	at      time.Time
	Type    string          `json:"type"`
	Event   string          `json:"event"`
	ID      string          `json:"id"`
	Seq     *int64          `json:"seq"`
	Payload payload         `json:"payload"`
	raw     json.RawMessage `json:"-"`
}

type payload struct {
	RunID      string          `json:"runId"`
	SessionKey string          `json:"sessionKey"`
	SessionID  string          `json:"sessionId"`
	AgentID    string          `json:"agentId"`
	Seq        int64           `json:"seq"`
	TS         int64           `json:"ts"`
	Stream     string          `json:"stream"`
	Data       json.RawMessage `json:"data"`
	State      string          `json:"state"`
	DeltaText  string          `json:"deltaText"`
	Replace    bool            `json:"replace"`
	Message    *struct {
		Role    string
		Content []struct{ Type, Text string }
	} `json:"message"`
}

func (c *client) receive(raw []byte) {
	f := frame{at: time.Now(), raw: append([]byte(nil), raw...)}
	if err := json.Unmarshal(raw, &f); err != nil {
		c.t.Errorf("%s: frame is no JSON: %v: %.200q", c.id, err, raw)
		return
	}
	c.got = append(c.got, f)
	c.bytes += len(raw)
	c.maxFrame = max(c.maxFrame, len(raw))
	if f.Type != "event" {
		return
	}
	if f.Seq != nil {
		c.t.Errorf("%s: frame has a seq of its own: %s", c.id, raw)
	}
	p := f.Payload
	if p.Seq < c.seq {
		c.t.Errorf("%s: seq %d after %d", c.id, p.Seq, c.seq)
	}
	c.seq = p.Seq
	if p.RunID == "" || p.SessionKey == "" {
		c.t.Errorf("%s: event without attribution: %s", c.id, raw)
	}
	switch {
	case f.Event == "chat" && p.State == "delta":
		c.chatDelta(p)
	case f.Event == "agent" && p.Stream == "assistant":
		c.assistant(p)
	}
}

func (c *client) chatDelta(p payload) {
	if p.Replace {
		c.chat = p.DeltaText
		c.replaced++
	} else {
		c.chat += p.DeltaText
	}
	if p.Message == nil {
		return
	}
	if c.message = p.Message.Content[0].Text; c.message != c.chat {
		c.t.Errorf("%s: message %.80q beside %.80q", c.id, c.message, c.chat)
	}
}

func (c *client) assistant(p payload) {
	var d struct {
		Text          *string
		Delta, ItemID string
		Replace       bool
	}
	if err := json.Unmarshal(p.Data, &d); err != nil {
		c.t.Error(err)
		return
	}
	if _, known := c.items[d.ItemID]; !known {
		c.order = append(c.order, d.ItemID)
	}
	c.deltas += d.Delta
	switch {
	case d.Replace && d.Text != nil:
		c.items[d.ItemID] = *d.Text
		c.replaced++
	default:
		c.items[d.ItemID] += d.Delta
		if d.Text != nil && *d.Text != c.items[d.ItemID] {
			c.t.Errorf("%s: text %.80q where deltas gave %.80q", c.id, *d.Text, c.items[d.ItemID])
		}
	}
}

// text is what the client shows of the assistant stream.
func (c *client) text() string {
	var parts []string
	for _, id := range c.order {
		if c.items[id] != "" {
			parts = append(parts, c.items[id])
		}
	}
	return strings.Join(parts, "\n\n")
}

// says tells the events in short: "3 tool", "4 chat:final", "res r1".
func (c *client) says() []string {
	var out []string
	for _, f := range c.got {
		switch {
		case f.Type == "res":
			out = append(out, "res "+f.ID)
		case f.Event == "chat":
			out = append(out, fmt.Sprintf("%d chat:%s", f.Payload.Seq, f.Payload.State))
		default:
			out = append(out, fmt.Sprintf("%d %s", f.Payload.Seq, f.Payload.Stream))
		}
	}
	return out
}

func (c *client) equal(want ...string) {
	c.t.Helper()
	if got := strings.Join(c.says(), ", "); got != strings.Join(want, ", ") {
		c.t.Errorf("%s got\n %s\nwant\n %s", c.id, got, strings.Join(want, ", "))
	}
}

// seqs are the numbers of the events, as they came.
func (c *client) seqs() []int64 {
	var out []int64
	for _, f := range c.got {
		if f.Type == "event" {
			out = append(out, f.Payload.Seq)
		}
	}
	return out
}

type obj = map[string]any

var (
	started  = stream.Agent("lifecycle", obj{"phase": "start", "startedAt": 1})
	finished = stream.Agent("lifecycle", obj{"phase": "end"})
)

func toolStart(id string) stream.Event {
	return stream.Agent("tool", obj{"phase": "start", "name": "read", "toolCallId": id})
}

func final(text string) stream.Event {
	return stream.Chat(obj{"state": "final", "stopReason": "stop", "message": obj{
		"role": "assistant", "content": []obj{{"type": "text", "text": text}},
	}})
}

func subscriber(id string, caps ...string) connection.Subscriber {
	return connection.Subscriber{ID: id, Caps: caps}
}
