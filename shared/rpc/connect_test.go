package rpc_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"laneway/shared/connection"
	"laneway/shared/protocol"
	"laneway/shared/rpc"
)

func TestConnect_SaysWhatIsServed(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.dial()
	var challenge protocol.Challenge
	into(t, c.find("challenge", 1, func(f *protocol.Frame) bool { return f.Event == protocol.EventChallenge }), &challenge)
	if challenge.Nonce == "" || challenge.TS == 0 {
		t.Errorf("challenge %+v", challenge)
	}
	var h protocol.HelloOK
	c.ok("connect", hello(w.secret, nil), &h)
	if h.Type != "hello-ok" || h.Protocol != 4 || h.Server.ConnID != c.id || h.Policy.MaxPayload != protocol.MaxMessageIn {
		t.Errorf("hello %+v", h)
	}
	for _, m := range []string{"agent", "agent.wait", "chat.send", "chat.history", "sessions.subscribe", "agents.list", "cron.add"} {
		if !slices.Contains(h.Features.Methods, m) {
			t.Errorf("%s is not listed", m)
		}
	}
	for _, m := range []string{"connect", "chat.inject", "sessions.get"} {
		if slices.Contains(h.Features.Methods, m) {
			t.Errorf("%s is listed", m)
		}
	}
	for _, m := range h.Features.Methods {
		if f := c.call(m, obj{"no such member": 1}); f.OK || f.Err.Code != protocol.CodeInvalidRequest || f.Err.Message == "unknown method: "+m {
			t.Errorf("%s with params that it does not have: ok %v, %v", m, f.OK, f.Err)
		}
	}
	c.fails("connect", hello(w.secret, nil), protocol.CodeInvalidRequest, "only valid as the first")
	c.fails("no.such.method", nil, protocol.CodeInvalidRequest, "unknown method: no.such.method")
}

func TestConnect_IsRefused(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	for _, c := range []struct {
		name   string
		method string
		params obj
		code   string
		detail string
		close  int
	}{
		{"another first request", "health", nil, protocol.CodeInvalidRequest, "", protocol.ClosePolicy},
		{"a version from the future", "connect", hello(w.secret, obj{"minProtocol": 5, "maxProtocol": 6}), protocol.CodeInvalidRequest, protocol.DetailProtocolMismatch, protocol.CloseProtocolError},
		{"another role", "connect", hello(w.secret, obj{"role": "node"}), protocol.CodeInvalidRequest, "", protocol.ClosePolicy},
		{"no credential", "connect", hello("", nil), protocol.CodeInvalidRequest, protocol.DetailTokenMissing, protocol.ClosePolicy},
		{"a wrong credential", "connect", hello("wrong", nil), protocol.CodeInvalidRequest, protocol.DetailTokenMismatch, protocol.ClosePolicy},
		{"no client", "connect", obj{"minProtocol": 4, "maxProtocol": 4}, protocol.CodeInvalidRequest, "", protocol.ClosePolicy},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := w.dial()
			f := conn.call(c.method, c.params)
			if f.OK || f.Err.Code != c.code || f.Err.Detail("code") != c.detail {
				t.Errorf("ok %v, %v %v", f.OK, f.Err, f.Err.Details)
			}
			if !slices.Equal(conn.closed, []int{c.close}) {
				t.Errorf("closed %v, want %d", conn.closed, c.close)
			}
			if g := conn.call("agents.list", nil); g.OK {
				t.Error("is let in all the same")
			}
		})
	}
}

func TestConnect_WhatIsNoRequestEndsIt(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	for body, code := range map[string]int{
		"hello": protocol.CloseNormal, `{"type":"event"}`: protocol.ClosePolicy, `[1]`: protocol.ClosePolicy,
		string(bytes.Repeat([]byte("x"), protocol.MaxFirstMessage+1)): protocol.CloseTooBig,
	} {
		c := w.dial()
		c.serve([]byte(body), 1)
		if !slices.Equal(c.closed, []int{code}) {
			t.Errorf("%.20s: closed %v, want %d", body, c.closed, code)
		}
	}
	c := w.user()
	before := c.dump()
	c.serve([]byte("not json"), 1)
	if c.dump() != before || len(c.closed) > 0 {
		t.Error("a text that is no JSON is answered, or ends a connection that is ready")
	}
}

func TestConnect_ADeviceMustProveItself(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	for _, right := range []bool{true, false} {
		c := w.dial()
		var ch protocol.Challenge
		into(t, c.find("challenge", 1, func(f *protocol.Frame) bool { return f.Event == protocol.EventChallenge }), &ch)
		b, err := json.Marshal(hello(w.secret, obj{"role": "operator", "scopes": []string{"operator.read"}}))
		must(t, err)
		p, perr := protocol.Decode[protocol.ConnectParams]("connect", b)
		if perr != nil {
			t.Fatal(perr)
		}
		_, key, err := ed25519.GenerateKey(nil)
		must(t, err)
		if !right {
			ch.Nonce = "of another connection"
		}
		protocol.SignDevice(&p, key, ch.Nonce, ch.TS)
		f := c.call("connect", p)
		if f.OK != right {
			t.Errorf("right %v: ok %v %v", right, f.OK, f.Err)
		}
		if !right && f.Err.Detail("code") != protocol.DetailDeviceInvalid {
			t.Errorf("details %v", f.Err.Details)
		}
	}
}

// TestConnect_ScopesAreTheLesserOfAskedAndGranted: what a token does not allow
// cannot be asked for, and nothing asked for is nothing.
func TestConnect_ScopesAreTheLesserOfAskedAndGranted(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	var h protocol.HelloOK
	c := w.dial()
	c.ok("connect", hello(w.secret, obj{"scopes": []string{}}), &h)
	if len(h.Auth.Scopes) != 0 {
		t.Errorf("scopes %v", h.Auth.Scopes)
	}
	c.ok("health", nil, nil)
	for method, scope := range map[string]string{
		"agent": protocol.ScopeWrite, "agent.wait": protocol.ScopeWrite, "chat.send": protocol.ScopeWrite, "chat.abort": protocol.ScopeWrite,
		"chat.history": protocol.ScopeRead, "chat.startup": protocol.ScopeRead, "chat.metadata": protocol.ScopeRead, "chat.inject": protocol.ScopeAdmin,
		"sessions.subscribe": protocol.ScopeRead, "sessions.unsubscribe": protocol.ScopeRead, "sessions.messages.subscribe": protocol.ScopeRead,
		"sessions.messages.unsubscribe": protocol.ScopeRead, "sessions.list": protocol.ScopeRead, "sessions.describe": protocol.ScopeRead,
		"sessions.resolve": protocol.ScopeRead, "sessions.get": protocol.ScopeRead, "sessions.preview": protocol.ScopeRead,
		"sessions.abort": protocol.ScopeWrite, "sessions.send": protocol.ScopeWrite, "sessions.create": protocol.ScopeWrite,
		"sessions.patch": protocol.ScopeWrite, "sessions.reset": protocol.ScopeAdmin, "sessions.delete": protocol.ScopeWrite,
		"agents.list": protocol.ScopeRead, "models.list": protocol.ScopeRead, "commands.list": protocol.ScopeRead,
		"question.list": protocol.ScopeQuestions, "plugin.approval.list": protocol.ScopeApprovals, "status": protocol.ScopeRead,
	} {
		e := c.fails(method, nil, protocol.CodeForbidden, "missing scope: "+scope)
		if e.Detail("code") != protocol.DetailMissingScope || e.Detail("missingScope") != scope {
			t.Errorf("%s: details %v", method, e.Details)
		}
	}
	reader := w.scoped(protocol.ScopeRead)
	reader.ok("sessions.list", nil, nil)
	reader.fails("agent", obj{"message": "m", "idempotencyKey": "k"}, protocol.CodeForbidden, protocol.ScopeWrite)
	writer := w.scoped(protocol.ScopeWrite)
	writer.fails("sessions.patch", obj{"key": "x", "sendPolicy": "deny"}, protocol.CodeForbidden, protocol.ScopeAdmin)
	writer.fails("sessions.delete", obj{"key": "x"}, protocol.CodeForbidden, protocol.ScopeAdmin)
	writer.fails("sessions.create", obj{"incognito": true}, protocol.CodeForbidden, protocol.ScopeAdmin)
	for _, text := range []string{"/new", "/reset go on"} {
		writer.fails("agent", obj{"message": text, "idempotencyKey": "k" + text}, protocol.CodeForbidden, protocol.ScopeAdmin)
		writer.fails("chat.send", obj{"sessionKey": "main", "message": text, "idempotencyKey": "c" + text}, protocol.CodeForbidden, protocol.ScopeAdmin)
	}
	writer.fails("agent", obj{"message": "m", "model": "fake-2", "idempotencyKey": "m"}, protocol.CodeInvalidRequest, "operator.admin")
}

// TestK1_ConnectAndDisconnectRace: whichever comes first, a connection that was
// closed is gone, and one that is let in twice is let in once.
func TestK1_ConnectAndDisconnectRace(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	for range 50 {
		c := w.dial()
		var wg sync.WaitGroup
		var hellos [2]string
		for i := range hellos {
			wg.Go(func() { hellos[i] = c.post("connect", hello(w.secret, nil)) })
		}
		wg.Go(func() { must(t, w.gw.Closed(context.Background(), c.id)) })
		wg.Wait()
		let := 0
		for _, h := range hellos {
			if c.answers(h) != 1 {
				t.Fatalf("%d answers to connect\n%s", c.answers(h), c.dump())
			}
			if c.answer(h, 1).OK {
				let++
			}
		}
		if let > 1 {
			t.Fatal("let in twice")
		}
		if _, err := w.core.Connections.Load(context.Background(), c.id); err == nil {
			t.Fatal("a closed connection is there")
		}
		if subs, err := w.core.Connections.Subscribers(context.Background(), "default", "agent:main:main"); err != nil || len(subs) > 0 {
			t.Fatalf("subscribers %v, %v", subs, err)
		}
	}
}

// TestK1_NoSubscriptionOutlivesItsConnection: subscribing and disconnecting at once
// leaves nobody behind.
func TestK1_NoSubscriptionOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	for range 30 {
		c := w.user()
		var wg sync.WaitGroup
		wg.Go(func() { c.post("sessions.messages.subscribe", obj{"key": "s"}) })
		wg.Go(func() { c.post("sessions.subscribe", nil) })
		wg.Go(func() { must(t, w.gw.Closed(context.Background(), c.id)) })
		wg.Wait()
	}
	subs, err := w.core.Connections.Subscribers(context.Background(), "default", "agent:main:s")
	if err != nil || len(subs) > 0 {
		t.Errorf("%d subscribers without a connection, %v", len(subs), err)
	}
}

// TestF30e_FirstFrameBeforeTheRecordIsVisible: a frame that is faster than the
// record of its own connection is not lost.
func TestF30e_FirstFrameBeforeTheRecordIsVisible(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.plug()
	body, err := protocol.AppendRequest(nil, "first", "connect", hello(w.secret, nil))
	must(t, err)
	done := make(chan struct{})
	looked := make(chan struct{}, 1)
	go func() {
		defer close(done)
		looked <- struct{}{}
		c.serve(body, 1)
	}()
	<-looked
	must(t, w.gw.Opened(context.Background(), c.id, ""))
	<-done
	if f := c.answer("first", 1); !f.OK {
		t.Errorf("answered %v", f.Err)
	}
}

func TestServe_AFrameOfNoConnectionIsAnswered(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.plug()
	if f := c.call("health", nil); f.OK || f.Err.Code != protocol.CodeUnavailable {
		t.Errorf("ok %v, %v", f.OK, f.Err)
	}
}

// TestServe_APanicIsAnsweredUnderItsRequest: a fault inside costs its own request
// and says nothing of what was in it.
func TestServe_APanicIsAnsweredUnderItsRequest(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	gw, err := w.core.Gateway(w.tokens, broken{})
	must(t, err)
	w.gw = gw
	f := c.call("agents.list", nil)
	if f.OK || f.Err.Code != protocol.CodeUnavailable || f.Err.Message != "internal error" {
		t.Errorf("ok %v, %v", f.OK, f.Err)
	}
	c.ok("health", nil, nil)
}

// broken is a directory with a fault.
type broken struct{ directory }

func (broken) Agents(context.Context, string) ([]rpc.Agent, error) {
	var agents []rpc.Agent
	i := len(agents)
	return agents[i : i+1 : i+1], nil // there is none to slice: it panics
}

func TestNew_RefusesWhatIsNotWired(t *testing.T) {
	t.Parallel()
	if _, err := rpc.New(rpc.Config{Connections: &connection.Service{}}); err == nil {
		t.Error("a gateway without its services")
	}
}
