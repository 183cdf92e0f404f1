package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"laneway/shared/protocol"
	"laneway/shared/queue"
	"laneway/shared/rpc"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

const key = "agent:main:s"

func TestAgent_IsAnsweredTwice(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	req := c.post("agent", obj{"sessionKey": "s", "message": "hello", "idempotencyKey": "k1"})
	var acc protocol.Accepted
	into(t, c.answer(req, 1), &acc)
	if acc.RunID != "k1" || acc.SessionKey != key || acc.AgentID != "main" || acc.Status != "accepted" || acc.AcceptedAt == 0 {
		t.Errorf("accepted %+v", acc)
	}
	var fin protocol.Final
	into(t, c.answer(req, 2), &fin)
	if fin.RunID != "k1" || fin.Status != "ok" || fin.Summary != "completed" || len(fin.Result.Payloads) != 1 || fin.Result.Payloads[0].Text != "you said hello" {
		t.Errorf("final %+v", fin)
	}
	w.idle(key)
	if n := c.answers(req); n != 2 {
		t.Errorf("%d answers", n)
	}
}

func TestAgent_SessionsAreFoundByEachOfTheirNames(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	n := 0
	accepted := func(params obj) protocol.Accepted {
		t.Helper()
		n++
		params["message"], params["idempotencyKey"] = "m", fmt.Sprintf("k%d", n)
		var a protocol.Accepted
		c.ok("agent", params, &a)
		return a
	}
	for _, r := range []struct {
		params obj
		want   string
	}{
		{obj{}, "agent:main:main"},
		{obj{"agentId": "other"}, "agent:other:main"},
		{obj{"sessionKey": "Work"}, "agent:main:work"},
		{obj{"sessionKey": "agent:other:x"}, "agent:other:x"},
		{obj{"to": "agent:main:by-to"}, "agent:main:by-to"},
		{obj{"to": "+491234"}, "agent:main:main"},
		{obj{"sessionId": "never seen"}, "agent:main:main"},
	} {
		if a := accepted(r.params); a.SessionKey != r.want {
			t.Errorf("%v: %s, want %s", r.params, a.SessionKey, r.want)
		}
	}
	id := w.meta("agent:main:work").SessionID
	if a := accepted(obj{"sessionId": id}); a.SessionKey != "agent:main:work" {
		t.Errorf("by id: %s", a.SessionKey)
	}
	c.fails("agent", obj{"sessionId": id, "agentId": "other", "message": "m", "idempotencyKey": "x"}, protocol.CodeInvalidRequest, "another agent")
	if m := w.meta("agent:main:work"); len(m.Pending) != 2 {
		t.Errorf("%d runs wait", len(m.Pending))
	}
}

func TestAgent_RefusesWhatIsNotRight(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	for _, r := range []struct {
		params obj
		code   string
		says   string
	}{
		{obj{"idempotencyKey": "k"}, protocol.CodeInvalidRequest, "'message'"},
		{obj{"message": "m"}, protocol.CodeInvalidRequest, "'idempotencyKey'"},
		{obj{"message": "m", "idempotencyKey": "k", "foo": 1}, protocol.CodeInvalidRequest, "unexpected property 'foo'"},
		{obj{"message": "m", "idempotencyKey": "cron:k"}, protocol.CodeInvalidRequest, "reserved"},
		{obj{"message": "m", "idempotencyKey": "k", "timeout": -1}, protocol.CodeInvalidRequest, "/timeout"},
		{obj{"message": "m", "idempotencyKey": "k", "agentId": "nobody"}, protocol.CodeInvalidRequest, `unknown agent id "nobody"`},
		{obj{"message": "m", "idempotencyKey": "k", "sessionKey": "agent:nobody:x"}, protocol.CodeInvalidRequest, "unknown agent id"},
		{obj{"message": "m", "idempotencyKey": "k", "sessionKey": "agent:main:"}, protocol.CodeInvalidRequest, "malformed"},
		{obj{"message": "m", "idempotencyKey": "k", "sessionKey": "agent:main:x", "agentId": "other"}, protocol.CodeInvalidRequest, "does not match"},
		{obj{"message": "m", "idempotencyKey": "k", "sessionKey": "x", "expectedExistingSessionId": "y"}, protocol.CodeUnavailable, "changed"},
		{obj{"message": strings.Repeat("m", 500_000), "idempotencyKey": "k"}, protocol.CodeInvalidRequest, "too large"},
	} {
		c.fails("agent", r.params, r.code, r.says)
	}
	if _, err := run.Load(context.Background(), w.store, run.RefOf("default", "k")); !errors.Is(err, run.ErrUnknown) {
		t.Errorf("a refused call left a record: %v", err)
	}
	c.ok("sessions.patch", obj{"key": "mute", "sendPolicy": "deny"}, nil)
	c.fails("agent", obj{"message": "m", "idempotencyKey": "k", "sessionKey": "mute", "deliver": true, "channel": "c"}, protocol.CodeInvalidRequest, "session policy")
}

// TestA2_TheReplyNeverPrecedesTheTransaction: at the moment when "accepted" is
// sent, the run and its place in the session can be read.
func TestA2_TheReplyNeverPrecedesTheTransaction(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	for method, body := range map[string]string{
		"agent":     `{"type":"req","id":"1","method":"agent","params":{"sessionKey":"s","message":"m","idempotencyKey":"agent"}}`,
		"chat.send": `{"type":"req","id":"2","method":"chat.send","params":{"sessionKey":"s","message":"m","idempotencyKey":"chat.send"}}`,
	} {
		said := 0
		w.gw.Serve(context.Background(), &rpc.Frame{ConnectionID: c.id, Body: []byte(body), At: c.at.Add(1), Send: func([]byte) {
			said++
			st, err := run.Load(context.Background(), w.store, run.RefOf("default", method))
			if err != nil || st.State != run.Pending || st.Input.Message != "m" {
				t.Errorf("%s: %+v, %v", method, st, err)
			}
			m := w.meta(key)
			if len(m.Pending) == 0 || m.Pending[len(m.Pending)-1].Run != method || !m.Busy {
				t.Errorf("%s: pending %v, in the index of active sessions: %v", method, m.Pending, m.Busy)
			}
		}})
		if said != 1 {
			t.Errorf("%s: %d answers", method, said)
		}
	}
}

// failing is a queue that may be down.
type failing struct {
	queue.Sender
	down atomic.Bool
}

func (f *failing) Send(ctx context.Context, lane queue.Lane, group, dedup string, body []byte) error {
	if f.down.Load() {
		return queue.ErrThrottled
	}
	return f.Sender.Send(ctx, lane, group, dedup, body)
}

// TestA1_AFailedWakeupDoesNotRefuseTheRun: the run is in the tables, so the reply is
// still "accepted"; a repeat of the key sends the wake-up again (A3).
func TestA1_AFailedWakeupDoesNotRefuseTheRun(t *testing.T) {
	t.Parallel()
	f := &failing{}
	w := setup(t, queued(func(s queue.Sender) queue.Sender { f.Sender = s; return f }))
	c := w.user()
	call := obj{"sessionKey": "s", "message": "m", "idempotencyKey": "k"}
	f.down.Store(true)
	var acc protocol.Accepted
	c.ok("agent", call, &acc)
	if acc.Status != "accepted" || len(w.meta(key).Pending) != 1 {
		t.Fatalf("%+v, %v", acc, w.meta(key).Pending)
	}
	f.down.Store(false)
	again := c.post("agent", call)
	if f := c.answer(again, 2); !f.OK {
		t.Errorf("final %v", f.Err)
	}
}

// TestF29_OneKeyIsOneRun: ten calls with one key over two connections, then more
// after a reconnect: one run, one user row, one model call, one outcome for all.
func TestF29_OneKeyIsOneRun(t *testing.T) {
	t.Parallel()
	w := setup(t)
	conns := []*client{w.user(), w.user()}
	call := obj{"sessionKey": "s", "message": "hold it", "idempotencyKey": "one"}
	var reqs [10]string
	var wg sync.WaitGroup
	for i := range reqs {
		wg.Go(func() { reqs[i] = conns[i%2].post("agent", call) })
	}
	wg.Wait()
	w.model.waitFor(t, "hold it")
	var first protocol.Accepted
	for i := range reqs {
		var a protocol.Accepted
		into(t, conns[i%2].answer(reqs[i], 1), &a)
		if i == 0 {
			first = a
		}
		if a.Status != "accepted" || a.RunID != "one" || a.AcceptedAt != first.AcceptedAt {
			t.Errorf("call %d: %+v, the first got %+v", i, a, first)
		}
	}
	w.model.release()
	for i := range reqs {
		var f protocol.Final
		into(t, conns[i%2].answer(reqs[i], 2), &f)
		if f.Status != "ok" || f.Result.Payloads[0].Text != "you said hold it" {
			t.Errorf("call %d: %+v", i, f)
		}
	}
	w.idle(key)
	var late protocol.Final
	c := w.user()
	c.ok("agent", call, &late)
	if late.Status != "ok" || late.RunID != "one" {
		t.Errorf("after a reconnect: %+v", late)
	}
	if n := w.model.count("hold it"); n != 1 {
		t.Errorf("%d model calls", n)
	}
	var h protocol.History
	c.ok("chat.history", obj{"sessionKey": "s"}, &h)
	users := 0
	for _, r := range h.Messages {
		if r.IdempotencyKey == "one:user" {
			users++
		}
	}
	if users != 1 || len(h.Messages) != 2 {
		t.Errorf("%d user rows of %d", users, len(h.Messages))
	}
	other := obj{"sessionKey": "s", "message": "something else", "idempotencyKey": "one"}
	if e := c.fails("agent", other, protocol.CodeInvalidRequest, ""); e.Detail("reason") != protocol.ReasonAgentConflict {
		t.Errorf("details %v", e.Details)
	}
}

// TestA3_TheKeyDecidesBeforeAnythingElse: a known key is answered from its record
// also where the call could not be accepted now, and never twice differently.
func TestA3_TheKeyDecidesBeforeAnythingElse(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	first := obj{"sessionKey": "s", "message": "m0", "idempotencyKey": "k0"}
	c.ok("agent", first, nil)
	for i := 1; i < session.MaxPending; i++ {
		c.ok("agent", obj{"sessionKey": "s", "message": "m", "idempotencyKey": fmt.Sprintf("k%d", i)}, nil)
	}
	e := c.fails("agent", obj{"sessionKey": "s", "message": "m", "idempotencyKey": "too many"}, protocol.CodeUnavailable, "too many messages")
	if !e.Retryable || e.Detail("reason") != protocol.ReasonQueueFull {
		t.Errorf("%+v", e)
	}
	var again protocol.Accepted
	c.ok("agent", first, &again)
	if again.Status != "accepted" || again.RunID != "k0" {
		t.Errorf("%+v", again)
	}
	for method, reason := range map[string]string{"agent": protocol.ReasonAgentConflict, "chat.send": protocol.ReasonChatConflict, "sessions.send": protocol.ReasonChatConflict} {
		params := obj{"sessionKey": "s", "message": "other", "idempotencyKey": "k0"}
		if method == "sessions.send" {
			params = obj{"key": "s", "message": "other", "idempotencyKey": "k0"}
		}
		if e := c.fails(method, params, protocol.CodeInvalidRequest, "another request"); e.Detail("reason") != reason {
			t.Errorf("%s: %v", method, e.Details)
		}
	}
}

// TestA3_TheSameRequestSentAgainIsNotAnsweredTwice: a client that repeats the very
// request, id and all, has one waiter.
func TestA3_TheSameRequestSentAgainIsNotAnsweredTwice(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	body, err := protocol.AppendRequest(nil, "same", "agent", obj{"sessionKey": "s", "message": "hold", "idempotencyKey": "k"})
	must(t, err)
	c.serve(body, c.at.Add(1))
	w.model.waitFor(t, "hold")
	c.serve(body, c.at.Add(1))
	w.model.release()
	c.answer("same", 3)
	w.idle(key)
	if n := c.answers("same"); n != 3 {
		t.Errorf("%d answers, want accepted twice and the final once\n%s", n, c.dump())
	}
}

func TestO1_RunsOfASessionKeepTheirOrder(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	var reqs []string
	for i := range 20 {
		reqs = append(reqs, c.post("agent", obj{"sessionKey": "s", "message": fmt.Sprintf("m%02d", i), "idempotencyKey": fmt.Sprintf("k%d", i)}))
	}
	for _, r := range reqs {
		c.answer(r, 2)
	}
	w.idle(key)
	var got []string
	for _, s := range w.model.texts() {
		if strings.HasPrefix(s, "m") {
			got = append(got, s)
		}
	}
	for i, s := range got {
		if s != fmt.Sprintf("m%02d", i) {
			t.Fatalf("order %v", got)
		}
	}
	if len(got) != 20 {
		t.Errorf("%d messages reached the model", len(got))
	}
}

// TestF18_AnUnknownRunIsWaitedForToTheEnd: an unknown run looks like one that does
// not end: the window passes, then {runId, status: timeout}, no other member. Another
// tenant's run looks exactly so.
func TestF18_AnUnknownRunIsWaitedForToTheEnd(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c, stranger := w.user(), w.stranger()
	c.says("s", "ours", "hello")
	for _, who := range []struct {
		c   *client
		run string
	}{{c, "nobody's"}, {stranger, "ours"}} {
		for _, window := range []time.Duration{0, 150 * time.Millisecond, 2100 * time.Millisecond} {
			t.Run(fmt.Sprint(who.run, window), func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				f := who.c.call("agent.wait", obj{"runId": who.run, "timeoutMs": window.Milliseconds()})
				want := fmt.Sprintf(`{"runId":%q,"status":"timeout"}`, who.run)
				if took := time.Since(began); !f.OK || string(f.Payload) != want || took < window {
					t.Errorf("after %s: ok %v %s, want %s", took, f.OK, f.Payload, want)
				}
			})
		}
	}
	c.fails("agent.wait", obj{"runId": "x", "timeoutMs": -1}, protocol.CodeInvalidRequest, "/timeoutMs")
	c.fails("agent.wait", obj{}, protocol.CodeInvalidRequest, "'runId'")
}

func TestWait_IsAnsweredByTheEndOfTheRun(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c, other := w.user(), w.user()
	early := other.post("agent.wait", obj{"runId": "k", "timeoutMs": 60_000}) // before there is such a run
	c.post("agent", obj{"sessionKey": "s", "message": "hold", "idempotencyKey": "k"})
	w.model.waitFor(t, "hold")
	late := other.post("agent.wait", obj{"runId": "k", "timeoutMs": 60_000})
	if f := other.call("agent.wait", obj{"runId": "k", "timeoutMs": 0}); string(f.Payload) != `{"runId":"k","status":"timeout"}` {
		t.Errorf("a run that goes on: %s", f.Payload)
	}
	w.model.release()
	for _, r := range []string{early, late, other.post("agent.wait", obj{"runId": "k"})} {
		var got protocol.Wait
		into(t, other.answer(r, 1), &got)
		if got.Status != "ok" || got.StartedAt == 0 || got.EndedAt < got.StartedAt || got.StopReason != "stop" || got.TerminalReply == nil || got.TerminalReply.Text != "you said hold" {
			t.Errorf("%+v", got)
		}
	}
	w.idle(key)
	if other.answers(early) != 1 || other.answers(late) != 1 {
		t.Error("a waiter is answered more than once")
	}
}

func TestWait_AQueuedChatTurnIsPending(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	c.ok("chat.send", obj{"sessionKey": "s", "message": "the one before", "idempotencyKey": "j"}, nil)
	c.ok("chat.send", obj{"sessionKey": "s", "message": "m", "idempotencyKey": "k", "queueMode": "followup"}, nil)
	f := c.call("agent.wait", obj{"runId": "k", "timeoutMs": 60_000})
	if want := `{"runId":"k","status":"pending","timeoutPhase":"queue","providerStarted":false,"disposition":{"kind":"queued","position":2}}`; string(f.Payload) != want {
		t.Errorf("%s, want %s", f.Payload, want)
	}
}

// TestK1_AStopThatOvertakesAFrameStopsIt: frames of one connection may be served in
// another order than they were sent. A message that was sent before a stop and is
// served after it never runs; one that was sent after it does.
func TestK1_AStopThatOvertakesAFrameStopsIt(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		w := setup(t)
		c := w.user()
		if known {
			c.says("s", "before", "hello")
			w.idle(key)
		}
		sent := c.at.Add(10)
		stop := c.postAt("chat.abort", obj{"sessionKey": "s"}, sent+1)
		var ab protocol.ChatAborted
		into(t, c.answer(stop, 1), &ab)
		if !ab.OK || ab.Aborted {
			t.Errorf("nothing to stop: %+v", ab)
		}
		c.at.Add(10)
		waits := c.post("agent.wait", obj{"runId": "k", "timeoutMs": 60_000})
		req := c.postAt("agent", obj{"sessionKey": "s", "message": "too late", "idempotencyKey": "k"}, sent)
		var f protocol.Final
		into(t, c.answer(req, 2), &f)
		var told protocol.Wait // at once, not when its time is over
		if into(t, c.answer(waits, 1), &told); told.Status != "error" || told.StopReason != "rpc" {
			t.Errorf("known %v: who waited for it was told %+v", known, told)
		}
		if f.Status != "timeout" || f.Summary != "aborted" || f.StopReason != "rpc" {
			t.Errorf("known %v: %+v", known, f)
		}
		chat := c.postAt("chat.send", obj{"sessionKey": "s", "message": "too late", "idempotencyKey": "k2"}, sent)
		into(t, c.answer(chat, 1), &f)
		if f.Status != "timeout" || f.Summary != "aborted" {
			t.Errorf("known %v: %+v", known, f)
		}
		if f := c.says("s", "after", "hello again"); f.Status != "ok" {
			t.Errorf("sent after the stop: %+v", f)
		}
		// Another connection is not concerned.
		o := w.user()
		o.at.Store(sent - 5)
		if f := o.says("s", "others", "me too"); f.Status != "ok" {
			t.Errorf("another connection: %+v", f)
		}
		w.idle(key)
		if n := w.model.count("too late"); n != 0 {
			t.Errorf("known %v: a stopped message reached the model", known)
		}
	}
}

// slow is a store whose writes to runs can be held.
type slow struct {
	table.Store
	hold chan struct{}
	at   chan struct{}
	on   atomic.Bool
}

func (s *slow) Write(ctx context.Context, ops ...table.Op) (table.Result, error) {
	if s.on.Load() && ops[0].Key.Table == table.Runs && len(ops) > 1 {
		s.at <- struct{}{}
		<-s.hold
	}
	return s.Store.Write(ctx, ops...)
}

// TestK1_AStopDuringAnAcceptStopsIt: the two meet in the transaction, not in a read
// before it.
func TestK1_AStopDuringAnAcceptStopsIt(t *testing.T) {
	t.Parallel()
	s := &slow{hold: make(chan struct{}), at: make(chan struct{}, 10)}
	w := setup(t, stored(func(st table.Store) table.Store { s.Store = st; return s }), noRunner)
	c := w.user()
	c.ok("agent", obj{"sessionKey": "s", "message": "first", "idempotencyKey": "first"}, nil)
	c.ok("chat.abort", obj{"sessionKey": "s"}, nil)
	s.on.Store(true)
	sent := c.at.Add(10)
	done := make(chan string)
	go func() {
		done <- c.postAt("agent", obj{"sessionKey": "s", "message": "m", "idempotencyKey": "k"}, sent)
	}()
	<-s.at // its transaction is on its way
	s.on.Store(false)
	c.postAt("chat.abort", obj{"sessionKey": "s"}, sent+1)
	close(s.hold)
	var f protocol.Final
	into(t, c.answer(<-done, 2), &f)
	if f.Status != "timeout" || f.Summary != "aborted" {
		t.Errorf("%+v", f)
	}
}
