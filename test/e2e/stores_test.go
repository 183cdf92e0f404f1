package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"laneway/shared/id"
	"laneway/shared/protocol"
	"laneway/shared/table/dynamo"
	"laneway/test/mockmodel"
	"laneway/test/serving"
)

// parallel is how many sessions are at work side by side; an endpoint that runs one
// invocation of a queue at a time can show that at this level only.
const parallel = 50

// fleet is what processes over the same stores have in common.
type fleet struct {
	name  string
	model *mockmodel.Server
	env   []string
}

// serve starts a process, which makes the stores where they are missing.
func (f fleet) serve(t *testing.T, args ...string) *serving.Gateway {
	t.Helper()
	return serving.Start(t, serving.Options{
		Args: append([]string{"--backend", "aws", "--stack", f.name, "--create", "--runs", strconv.Itoa(parallel)}, args...),
		Env:  f.env,
	})
}

// at is a process as clients see it.
func (f fleet) at(t *testing.T, p *serving.Gateway) gateway {
	t.Helper()
	return gateway{
		Level: "stores", URL: p.URL, Token: serving.Token,
		Tables: dynamo.New(dynamodb.NewFromConfig(cloud(t)), dynamo.Config{Prefix: f.name + "-"}),
	}
}

func newFleet(t *testing.T) fleet {
	t.Helper()
	on(t)
	needTables(t, cloud(t))
	f := fleet{name: "stores-" + id.UUID()[:8], model: mockmodel.New(t)}
	f.env = []string{"OPENAI_BASE_URL=" + f.model.URL, "OPENAI_API_KEY=x", "LANEWAY_MODEL=openai/" + mockmodel.Model}
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "AWS_") {
			f.env = append(f.env, v)
		}
	}
	return f
}

// TestStores is the edition without functions over the same stores.
func TestStores(t *testing.T) {
	f := newFleet(t)
	g := f.at(t, f.serve(t, "--limits", "apigateway"))
	t.Run("clients", func(t *testing.T) { clients(t, g, f.model) })
	t.Run("parallel sessions", func(t *testing.T) { sideBySide(t, g, f.model) })
}

// sideBySide has a turn under way in many sessions at once, and then several more in
// each.
func sideBySide(t *testing.T, g gateway, model *mockmodel.Server) {
	const rounds = 4
	gate := id.UUID()
	model.Script(mockmodel.Reply{Match: "all at once", Text: []string{"here"}, Gate: gate, Times: parallel})
	var wg sync.WaitGroup
	var mu sync.Mutex
	var whole []time.Duration
	for n := range parallel {
		l, key := g.dial(t), fmt.Sprintf("agent:main:side-%02d", n)
		wg.Go(func() {
			for round := range rounds {
				message, want := "all at once", "here"
				if round > 0 {
					message = fmt.Sprintf("round %d of %d", round, n)
					want = "You said: " + message
				}
				began := time.Now()
				f, err := l.final(within(t, 2*patience), protocol.AgentParams{Message: message, SessionKey: key, IdempotencyKey: id.UUID()})
				if err != nil || reply(f) != want {
					t.Errorf("session %d, round %d: %+v, %v", n, round, f, err)
					return
				}
				if round > 0 {
					mu.Lock()
					whole = append(whole, time.Since(began))
					mu.Unlock()
				}
			}
		})
	}
	poll(t, 2*patience, "not all sessions are at work at once", func() bool { return model.Waiting(gate) == parallel })
	model.Open(gate)
	began := time.Now()
	wg.Wait()
	if t.Failed() {
		return
	}
	figure(t, g.Level, fmt.Sprintf("turn, %d sessions side by side", parallel), whole)
	t.Logf("%.1f turns a second", float64(len(whole))/time.Since(began).Seconds())
}

// TestStores_ProcessesStandInForEachOther: two processes over the same stores, of
// which one is killed with a run under way. The other goes on with it, and clients of
// either are told.
func TestStores_ProcessesStandInForEachOther(t *testing.T) {
	f := newFleet(t)
	short := []string{"--lease", "3s"}
	one := f.serve(t, short...)
	first := f.at(t, one)
	second := f.at(t, f.serve(t, short...))

	// A turn of a client here may run there; its events come in any case.
	for n := range 10 {
		l := []gateway{first, second}[n%2].dial(t)
		p := protocol.AgentParams{Message: "who", SessionKey: fmt.Sprintf("agent:main:peer-%d", n), IdempotencyKey: id.UUID()}
		got, err := l.final(within(t, patience), p)
		if err != nil || reply(got) != "You said: who" {
			t.Fatalf("turn %d: %+v, %v", n, got, err)
		}
		l.await(within(t, patience), t, "the end", func(e event) bool { return e.RunID == p.IdempotencyKey && e.phase() == protocol.LifecycleEnd })
		if bad := unbroken(l.of(p.IdempotencyKey, protocol.EventAgent), 0); bad != "" {
			t.Errorf("turn %d: %s", n, bad)
		}
	}

	gate := id.UUID()
	f.model.Script(
		mockmodel.Reply{Match: "over a crash", Text: []string{"lost ", "words"}, Gate: gate, GateAt: 1, Times: 2},
		mockmodel.Reply{Match: "over a crash", Text: []string{"back ", "again"}, Times: -1},
	)
	// Two runs: whichever process has which, one of them is in the one that dies, or
	// both are in the other, and then nothing of this is shown.
	l := second.dial(t)
	runs := []string{id.UUID(), id.UUID()}
	for _, run := range runs {
		l.call(t, "agent", protocol.AgentParams{Message: "over a crash", SessionKey: "agent:main:" + run, IdempotencyKey: run}, nil)
		l.await(within(t, patience), t, "a delta", func(e event) bool { return e.RunID == run && e.Stream == protocol.StreamAssistant })
	}
	if err := one.Kill(); err != nil {
		t.Fatal(err)
	}
	f.model.Open(gate)
	for _, run := range runs {
		w := l.wait(t, run, recoverWithin)
		if w.Status != protocol.StatusOK || w.TerminalReply == nil {
			t.Fatalf("%+v", w)
		}
		l.await(within(t, patience), t, "the end", func(e event) bool { return e.RunID == run && e.phase() == protocol.LifecycleEnd })
		if bad := unbroken(l.of(run, protocol.EventAgent), 1); bad != "" {
			t.Error(bad)
		}
		t.Logf("ended with %q", w.TerminalReply.Text)
	}
}
