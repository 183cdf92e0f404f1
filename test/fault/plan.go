package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"laneway/shared/connection"
	"laneway/shared/model"
	"laneway/shared/protocol"
	"laneway/shared/rpc"
	"laneway/shared/session"
	"laneway/shared/token"
)

// op is a request of a client.
type op struct {
	id     string // of the request
	at     time.Duration
	when   kind // not before a write of this kind is about to be made in its session
	conn   *conn
	method string
	params map[string]any
	runID  string
	key    string // of the session
	frame  int64  // µs of its frame
	mode   string
	slot   *slot // gateway that it comes to
	begun  bool
	over   bool
	lost   bool // its gateway died with it, or told it to come again
	again  bool // it was sent once more
	tries  int
	first  *op // of which it is a repeat
}

// plan makes the scenario of the seed: who says what, when, and what may go wrong.
func (s *Sim) plan() {
	p := &s.p
	n := func(most int) int {
		if most <= 0 {
			return 0
		}
		return s.rng.IntN(most + 1)
	}
	if len(p.Late) > 0 {
		s.late = pick(s, p.Late)
	}
	s.budget = budget{n(p.Kills), n(p.Freezes), n(p.Stores), n(p.Queues), n(p.Posts)}
	for i := range 2 {
		c := &conn{s: s, id: fmt.Sprintf("conn%d", i+1)}
		s.conns[c.id] = c
	}
	for i := range 2 {
		s.slots = append(s.slots, &slot{name: fmt.Sprintf("gateway%d", i+1), role: gateway})
	}
	for i := range p.Runners {
		s.slots = append(s.slots, &slot{name: fmt.Sprintf("runner%d", i+1), role: runner, lane: "main"})
	}
	if slices.Contains(p.Modes, "cron") {
		s.slots = append(s.slots, &slot{name: "cronner", role: runner, lane: "cron"})
	}
	s.slots = append(s.slots, &slot{name: "watchdog", role: watchdog}, &slot{name: "notifier", role: notifier}, &slot{name: "notifier2", role: notifier})
	s.sweepAt = time.Duration(s.rng.Int64N(int64(s.sweepEvery())))
	if s.cfg.script != nil {
		s.cfg.script.play(s)
		s.inFrames()
		return
	}

	var sent []*op
	for i := range p.Messages {
		sent = append(sent, s.message(i))
	}
	for range n(p.Waits) {
		of := pick(s, sent)
		s.add(&op{method: "agent.wait", runID: of.runID, key: of.key, params: map[string]any{
			"runId": of.runID, "timeoutMs": pick(s, []int64{3000, 8000, 20_000, 120_000}),
		}})
	}
	for range n(p.Stops) {
		of := pick(s, sent)
		o := &op{method: "chat.abort", key: of.key, params: map[string]any{"sessionKey": of.key}}
		if !s.chance(3) {
			o.runID = of.runID
			o.params["runId"] = of.runID
		}
		if s.chance(2) {
			at := p.StopAt
			if at == nil {
				at = []kind{kClaim, kTerminal, kRelease, kAccept, kSteer, kSettled, kCommit}
			}
			o.when = pick(s, at)
		}
		s.add(o)
	}
	for range n(p.Commands) {
		of := pick(s, sent)
		s.add(&op{method: "chat.inject", key: of.key, params: map[string]any{"sessionKey": of.key, "message": "a note of the operator"}})
	}
	for range n(p.Resets) {
		of := pick(s, sent)
		s.add(&op{method: "sessions.reset", key: of.key, params: map[string]any{"key": of.key}})
	}
	for range n(p.Repeats) {
		s.repeat(pick(s, sent), false)
	}
	for range n(p.Conflicts) {
		s.repeat(pick(s, sent), true)
	}
	s.inFrames()
}

// inFrames gives the requests growing frame times, in the order in which they are sent.
func (s *Sim) inFrames() {
	slices.SortStableFunc(s.ops, func(a, b *op) int { return int(a.at - b.at) })
	for i, o := range s.ops {
		o.frame = s.start.Add(o.at).UnixMicro() + int64(i)
	}
}

// message is a call that begins a run. Several come at once now and then.
func (s *Sim) message(i int) *op {
	key := fmt.Sprintf("agent:main:s%d", 1+s.rng.IntN(s.p.Sessions))
	o := newMessage(fmt.Sprintf("r%d", i+1), key, pick(s, s.p.Modes), pick(s, s.p.Plans))
	s.add(o)
	switch {
	case i > 0 && s.late != "" && s.chance(2):
		o.when = s.late
	case i > 0 && s.chance(3):
		o.at = s.ops[s.rng.IntN(len(s.ops))].at
	case i > 0 && s.chance(4):
		o.when = pick(s, []kind{kTerminal, kRelease, kSettled, kCancel, kCutoff, kCommit, kClaim})
	}
	return o
}

// newMessage is a call that begins a run in a mode, with a plan.
func newMessage(runID, key, mode, plan string) *op {
	text := fmt.Sprintf("say %s plan=%s;", runID, plan)
	o := &op{runID: runID, key: key, mode: mode}
	switch mode {
	case "agent", "cron":
		o.method = "agent"
		o.params = map[string]any{"message": text, "idempotencyKey": runID, "sessionKey": key}
		if mode == "cron" {
			o.params["lane"] = "cron"
		}
	case "text":
		o.method = "chat.send"
		o.params = map[string]any{"message": text, "idempotencyKey": runID, "sessionKey": key}
	default:
		o.method = "chat.send"
		o.params = map[string]any{"message": text, "idempotencyKey": runID, "sessionKey": key, "queueMode": mode}
	}
	return o
}

func (s *Sim) add(o *op) {
	if o.id == "" {
		o.id = fmt.Sprintf("q%d", len(s.ops)+1)
	}
	if o.at == 0 {
		o.at = time.Duration(s.rng.Int64N(int64(s.p.Spread)))
	}
	if o.conn == nil {
		o.conn = s.conns[fmt.Sprintf("conn%d", 1+s.rng.IntN(2))]
	}
	o.slot = s.slots[s.rng.IntN(2)]
	s.ops = append(s.ops, o)
}

// repeat sends a key again, or another request under it.
func (s *Sim) repeat(of *op, other bool) {
	o := &op{method: of.method, params: map[string]any{}, runID: of.runID, key: of.key, mode: of.mode, first: of}
	maps.Copy(o.params, of.params)
	if other {
		o.mode = "conflict"
		o.params["message"] = fmt.Sprintf("say %s plan=; something else", of.runID)
	}
	s.add(o)
	o.at = of.at + time.Duration(s.rng.Int64N(int64(s.p.Spread)))
}

// open starts the processes and connects the clients.
func (s *Sim) open() {
	for _, sl := range s.slots {
		s.spawn(sl)
	}
	ctx := context.Background()
	svc := &connection.Service{Store: s.store.tables, Clock: clockOf{s.procs[0]}}
	for i, c := range []*conn{s.conns["conn1"], s.conns["conn2"]} {
		caps := connection.Client{Protocol: 4}
		if i == 0 {
			caps.Caps = []string{"tool-events"}
		}
		if err := svc.Open(ctx, connection.Row{ID: c.id, Nonce: "n"}); err != nil {
			s.violatef("kit", "connection: %v", err)
		}
		who := connection.Principal{Tenant: session.DefaultTenant, Role: "operator", Scopes: []string{protocol.ScopeAdmin}}
		if err := svc.Ready(ctx, c.id, who, caps); err != nil {
			s.violatef("kit", "connection: %v", err)
		}
	}
}

// ask gives a request to its gateway.
func (s *Sim) ask(o *op) {
	o.begun = true
	p := o.slot.cur
	s.notef(o.conn.id, "%s %s %s to %s", o.id, o.method, o.runID, p.name)
	body, err := json.Marshal(map[string]any{"type": "req", "id": o.id, "method": o.method, "params": o.params})
	if err != nil {
		s.violatef("kit", "request: %v", err)
	}
	s.ghost.asked(o)
	go func() {
		p.gate.Serve(p.ctx, &rpc.Frame{
			ConnectionID: o.conn.id, Body: body, At: o.frame,
			Send: func(b []byte) {
				b = slices.Clone(b)
				if p.park(context.Background(), call{what: "reply " + brief(b), point: afterSend}) == proceed {
					o.conn.take(p, b)
				}
			},
			Closing: func(int, string) {},
		})
		if p.park(context.Background(), call{what: "has served " + o.id}) == killed {
			o.lost = true
		}
		o.over = true
	}()
}

// tries is how often a client sends a request again whose gateway died, or which was
// told to come again.
const tries = 4

// askAgain sends a request once more, as a client that lost its gateway does: under the
// same key, as a new request.
func (s *Sim) askAgain(o *op) {
	o.again = true
	n := *o
	n.id, n.begun, n.over, n.lost, n.again, n.when, n.first = o.id+"+", false, false, false, false, "", o
	n.tries, n.at = o.tries+1, s.now()+time.Second
	n.frame = s.start.Add(n.at).UnixMicro() + int64(len(s.ops))
	n.slot = s.slots[s.rng.IntN(2)]
	s.ops = append(s.ops, &n)
}

// persist sends again what got no answer because its gateway died.
func (s *Sim) persist() {
	for _, o := range s.ops {
		if o.lost && !o.again && o.tries < tries {
			s.askAgain(o)
		}
	}
}

// nobody knows no token: the kit's connections are ready.
type nobody struct{}

func (nobody) Check(context.Context, string) (token.Grant, error) {
	return token.Grant{}, token.ErrUnknown
}

type directory struct{}

func (directory) Agents(context.Context, string) ([]rpc.Agent, error) {
	return []rpc.Agent{{ID: "main", Provider: "fake", Model: "fake-1"}}, nil
}

func (directory) Models(context.Context, string) ([]model.Info, error) { return nil, nil }
