package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"laneway/shared/client"
	"laneway/shared/protocol"
	"laneway/shared/session"
)

// turn is one message on its way: from the request to the printed answer.
type turn struct {
	a      *app
	t      target
	params protocol.AgentParams
	json   bool
	local  bool
	// verbose, if it was given, is kept in the session before the run.
	verbose string
	files   []string // paths of files that go with the message
	show    *answer
	spin    *progress

	events   eventQueue
	accepted *protocol.Accepted
}

// grace is what a client waits longer than the run's own limit, for the reply to
// arrive.
const grace = 30 * time.Second

// noLimit stands for "as long as it takes": what the timers of all clients can hold.
const noLimit = (1<<31 - 1) * time.Millisecond

func newTurn(a *app, t target, p protocol.AgentParams, c *agentCommand) *turn {
	stream := a.stdoutTerminal && !c.JSON
	return &turn{
		a: a, t: t, params: p, json: c.JSON, local: c.Local, verbose: c.Verbose, files: c.File,
		show:   &answer{out: a.stdout, live: stream},
		spin:   &progress{a: a, on: a.stderrTerminal && !c.JSON},
		events: eventQueue{more: make(chan struct{}, 1)},
	}
}

// reply is the last answer to the request.
type reply struct {
	raw json.RawMessage
	err error
}

func (t *turn) run(ctx context.Context) error {
	limit := noLimit
	if s := *t.params.Timeout; s > 0 && s < int64(noLimit/time.Second) {
		limit = time.Duration(s)*time.Second + grace
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t.spin.start("connecting")
	defer t.spin.stop()
	conn, signal, err := t.connect(ctx)
	switch {
	case signal != nil:
		return signalled(signal)
	case err != nil:
		return err
	}
	defer conn.Close()
	if err := t.keepVerbose(ctx, conn); err != nil {
		return err
	}
	if err := t.attach(ctx, conn); err != nil {
		return err
	}
	accepted := make(chan json.RawMessage, 1)
	replies := make(chan reply, 1)
	go func() { // ends with the connection, which this function closes
		raw, err := conn.CallFinal(ctx, "agent", t.params, func(p json.RawMessage) { accepted <- p })
		replies <- reply{raw, err}
	}()
	t.spin.say("waiting")
	return t.follow(ctx, conn, accepted, replies)
}

// connect dials; a signal meanwhile ends it.
func (t *turn) connect(ctx context.Context) (*client.Conn, os.Signal, error) {
	ctx, cancel := context.WithCancel(ctx)
	type dialled struct {
		conn *client.Conn
		err  error
	}
	done := make(chan dialled, 1)
	go func() {
		conn, err := t.t.dial(ctx, scopesTurn, t.events.put)
		done <- dialled{conn, err}
	}()
	select {
	case d := <-done:
		cancel()
		return d.conn, nil, d.err
	case s := <-t.a.signals:
		cancel()
		if d := <-done; d.conn != nil {
			d.conn.Close()
		}
		return nil, s, nil
	}
}

// keepVerbose stores the verbose level in the session, as later runs use it too.
func (t *turn) keepVerbose(ctx context.Context, conn *client.Conn) error {
	if t.verbose == "" {
		return nil
	}
	key, _, err := session.Key(t.params.SessionKey, t.params.AgentID)
	if err != nil {
		return err
	}
	err = conn.Call(ctx, "sessions.patch", map[string]string{"key": key, "verboseLevel": t.verbose}, nil)
	if err != nil {
		return fmt.Errorf("--verbose cannot be kept in the session: %w", err)
	}
	return nil
}

// follow shows what comes until the last reply, or a signal.
func (t *turn) follow(ctx context.Context, conn *client.Conn, accepted <-chan json.RawMessage, replies <-chan reply) error {
	for {
		select {
		case p := <-accepted:
			t.accept(p)
		case <-t.events.more:
			t.showEvents()
		case <-t.spin.tick():
			t.spin.draw()
		case r := <-replies:
			// The reply overtakes neither the acceptance nor events: both came before it.
			select {
			case p := <-accepted:
				t.accept(p)
			default:
			}
			t.showEvents()
			t.spin.stop()
			return t.finish(r)
		case s := <-t.a.signals:
			t.spin.stop()
			t.show.end()
			t.abort(ctx, conn, accepted)
			return signalled(s)
		}
	}
}

func (t *turn) accept(raw json.RawMessage) {
	var p protocol.Accepted
	if json.Unmarshal(raw, &p) == nil {
		t.accepted = &p
	}
}

// How long and how often an interrupted command tries to stop its run.
const (
	abortTimeout = 2 * time.Second
	abortTries   = 5
)

// abort stops the run that was accepted, or that is accepted just now. A second
// signal ends the attempt.
func (t *turn) abort(ctx context.Context, conn *client.Conn, accepted <-chan json.RawMessage) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer func() { <-done }()
	go func() {
		defer close(done)
		select {
		case <-t.a.signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	defer cancel()
	if t.accepted == nil {
		select {
		case p := <-accepted:
			t.accept(p)
		case <-t.a.clock.After(abortTimeout):
		case <-ctx.Done():
		}
	}
	if t.accepted == nil {
		return
	}
	params := protocol.ChatAbortParams{SessionKey: t.accepted.SessionKey, RunID: t.accepted.RunID, AgentID: t.accepted.AgentID}
	for range abortTries {
		try, stop := context.WithTimeout(ctx, abortTimeout)
		err := conn.Call(try, "chat.abort", params, nil)
		stop()
		if _, refused := errors.AsType[*client.CallError](err); err == nil || refused || ctx.Err() != nil {
			return
		}
	}
	fmt.Fprintf(t.a.stderr, "laneway: run %s could not be stopped and may go on\n", t.accepted.RunID)
}

// eventQueue hands events from the connection to the turn without ever holding the
// connection up.
type eventQueue struct {
	mu   sync.Mutex
	list []client.Event
	more chan struct{} // holds one: "look again"
}

func (q *eventQueue) put(e client.Event) {
	q.mu.Lock()
	q.list = append(q.list, e)
	q.mu.Unlock()
	select {
	case q.more <- struct{}{}:
	default:
	}
}

func (q *eventQueue) take() []client.Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	q.list = nil
	return list
}
