package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"laneway/shared/id"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/test/conformance"
	"laneway/test/mockmodel"
)

// functionLimit is the runner's time limit in the second deployment, and longRun how
// many of them a run lasts there.
const (
	functionLimit = 10 * time.Second
	longRun       = 5
)

// recoverWithin is how soon a run whose runner died goes on (R3), with what the
// endpoint's schedules and a busy machine add.
const recoverWithin = 150 * time.Second

// TestDeployed is the life of a stack, in the order in which things happen to it.
func TestDeployed(t *testing.T) {
	on(t)
	s := newStack(t, "e2e-"+id.UUID()[:6])
	s.up(t)
	destroyed := false
	t.Cleanup(func() {
		if !destroyed {
			s.end(t)
		}
	})

	t.Run("clients", func(t *testing.T) { clients(t, s.gateway, s.model) })
	t.Run("stock command line", func(t *testing.T) { stock(t, s.gateway, s.model) })
	t.Run("reference client", func(t *testing.T) { reference(t, s.gateway, s.model) })
	t.Run("samples of events", func(t *testing.T) { samples(t, s) })
	t.Run("schedules", func(t *testing.T) { scheduled(t, s) })
	t.Run("redeployed while a run is active", func(t *testing.T) { redeployed(t, s) })
	var recovered func(*testing.T)
	t.Run("a runner is killed in mid-stream", func(t *testing.T) { recovered = kill(t, s) })
	// Its claim has to end first: time for another one.
	t.Run("a run over five time limits", func(t *testing.T) { overLimits(t, s) })
	if recovered != nil {
		t.Run("the killed run has gone on", recovered)
	}
	t.Run("each grant is needed", func(t *testing.T) { grants(t, s) })
	t.Run("destroyed", func(t *testing.T) {
		destroyed = true
		s.end(t)
		s.nothingLeft(t)
	})
}

// installed is the stock command line against a gateway; scripts/e2e.sh installs it.
func installed(t *testing.T, g gateway) conformance.Stock {
	t.Helper()
	dir := os.Getenv("LANEWAY_CONFORMANCE")
	if dir == "" {
		t.Skip("needs programs from npm: make e2e")
	}
	return conformance.Stock{Dir: dir, Home: t.TempDir(), URL: g.URL, Token: g.Token}
}

// stock is what a user of the stock command line does first.
func stock(t *testing.T, g gateway, model *mockmodel.Server) {
	s := installed(t, g)
	model.Script(
		mockmodel.Reply{Match: "stock tool", Calls: []mockmodel.Call{{ID: "call_1", Name: "ls", Arguments: `{"path":"."}`}}},
		mockmodel.Reply{Match: "stock tool", After: true, Text: []string{"All ", "seen."}},
		mockmodel.Reply{Match: "stock stall", Text: []string{"it ", "begins"}, Stall: true},
	)
	for _, c := range []struct {
		name  string
		code  int
		parts []string
		args  []string
	}{
		{"agent", 0, []string{"You said: hi"}, []string{"agent", "--agent", "main", "--message", "hi"}},
		{"agent with a tool", 0, []string{"All seen."}, []string{"agent", "--session-key", "agent:main:stock", "--message", "stock tool"}},
		{"health", 0, []string{`"ok": true`}, []string{"gateway", "call", "health"}},
		{"agent by call, with the final", 0, []string{`"status": "ok"`, "You said: final"}, []string{
			"gateway", "call", "agent", "--expect-final", "--timeout", "30000",
			"--params", `{"message":"final","agentId":"main","idempotencyKey":"stock-final"}`,
		}},
		{"agent.wait", 0, []string{`"status": "ok"`, "You said: final"}, []string{
			"gateway", "call", "agent.wait", "--params", `{"runId":"stock-final","timeoutMs":8000}`,
		}},
		{"a wrong method", 1, []string{"unknown method: no.such.method"}, []string{"gateway", "call", "no.such.method"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := s.Start(t.Context(), c.args...)
			if err != nil {
				t.Fatal(err)
			}
			res, err := r.Wait()
			if err != nil || res.Code != c.code {
				t.Error(err, res)
			}
			for _, part := range c.parts {
				if !strings.Contains(res.Stdout+res.Stderr, part) {
					t.Errorf("no %q in %v", part, res)
				}
			}
		})
	}
	t.Run("an interrupt aborts", func(t *testing.T) {
		n := len(model.Requests())
		r, err := s.Start(t.Context(), "agent", "--session-key", "agent:main:stock-stall", "--message", "stock stall")
		if err != nil {
			t.Fatal(err)
		}
		model.AwaitRequests(t, n+1)
		if err := r.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if res, err := r.Wait(); err != nil || res.Code != 130 {
			t.Error(err, res)
		}
		l := g.dial(t)
		poll(t, patience, "the interrupted run goes on", func() bool {
			return slices.ContainsFunc(l.history(t, "agent:main:stock-stall"), func(s string) bool { return strings.HasPrefix(s, "assistant:it begins") })
		})
	})
}

func reference(t *testing.T, g gateway, model *mockmodel.Server) {
	s := installed(t, g)
	model.Script(conformance.ReferenceReplies()...)
	findings, err := s.Reference(t.Context(), filepath.Join("..", "conformance", "testdata", "reference.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Error(f)
	}
}

// redeployed replaces every function, with a shorter time limit for the runner, while
// a run waits for its model.
func redeployed(t *testing.T, s *stack) {
	gate := id.UUID()
	s.model.Script(mockmodel.Reply{Match: "over a redeploy", Text: []string{"still ", "here"}, Gate: gate, GateAt: 1, Times: 3})
	l := s.dial(t)
	runID := id.UUID()
	l.call(t, "agent", protocol.AgentParams{Message: "over a redeploy", SessionKey: "agent:main:redeploy", IdempotencyKey: runID}, nil)
	s.model.AwaitWaiting(t, gate)
	s.up(t, "runner.timeout="+strconv.Itoa(int(functionLimit/time.Second)), "log.level=debug")
	s.model.Open(gate)
	began := time.Now()
	if w := l.wait(t, runID, recoverWithin); w.Status != protocol.StatusOK || w.TerminalReply == nil || w.TerminalReply.Text != "still here" {
		t.Fatalf("%+v", w)
	}
	figure(t, s.Level, "end of a run after the redeploy", []time.Duration{time.Since(began)})
	l.await(within(t, patience), t, "the end", func(e event) bool { return e.RunID == runID && e.phase() == protocol.LifecycleEnd })
	if bad := unbroken(l.of(runID, protocol.EventAgent), 1); bad != "" {
		t.Error(bad)
	}
	if got, want := l.history(t, "agent:main:redeploy"), []string{"user:over a redeploy", "assistant:still here"}; !slices.Equal(got, want) {
		t.Errorf("history: %q", got)
	}
}

// overLimits is a run whose steps take longer than the runner is given, five times
// over. Its client sees one run.
func overLimits(t *testing.T, s *stack) {
	const step = 2 * time.Second
	steps := int(longRun*functionLimit/step) + 1
	for n := range steps {
		// Each call differs from the others: a loop would be broken.
		s.model.Script(mockmodel.Reply{
			Match: "a long way", After: n > 0, Text: []string{"on", " and", " on "}, PauseMs: int(step.Milliseconds() / 3),
			Calls: []mockmodel.Call{{ID: "call_1", Name: "ls", Arguments: `{"path":"` + strings.Repeat("./", n+1) + `"}`}},
		})
	}
	s.model.Script(mockmodel.Reply{Match: "a long way", After: true, Text: []string{"there"}})
	l := s.dial(t)
	p := protocol.AgentParams{Message: "a long way", SessionKey: "agent:main:long", IdempotencyKey: id.UUID()}
	began := time.Now()
	f, err := l.final(within(t, 2*longRun*functionLimit+recoverWithin), p)
	if err != nil || f.Status != protocol.StatusOK || !strings.HasSuffix(reply(f), "there") {
		t.Fatalf("%+v, %v", f, err)
	}
	took := time.Since(began)
	figure(t, s.Level, "a run over five limits of 10 s", []time.Duration{took})
	l.await(within(t, patience), t, "the end", func(e event) bool {
		return e.RunID == p.IdempotencyKey && e.phase() == protocol.LifecycleEnd
	})
	events := l.of(p.IdempotencyKey, protocol.EventAgent)
	if bad := unbroken(events, 0); bad != "" {
		t.Error(bad)
	}
	for i, e := range events {
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has number %d: one is missing", i+1, e.Seq)
			break
		}
	}
	st, err := run.Load(t.Context(), s.Tables, run.RefOf("default", p.IdempotencyKey))
	if err != nil || took < longRun*functionLimit || st.Attempt < longRun+1 {
		t.Errorf("it took %v and %d invocations (%v): no run over %d limits", took, st.Attempt, err, longRun)
	}
}

// kill ends the runner's process as a crash does, while the model streams, and gives
// the test of what became of the run; nil, where it was not killed.
func kill(t *testing.T, s *stack) (recovered func(*testing.T)) {
	if runtime.GOOS != "linux" {
		lacksf(t, "killing a runner needs /proc")
	}
	gate := id.UUID()
	s.model.Script(
		mockmodel.Reply{Match: "over a crash", Text: []string{"lost ", "words"}, Gate: gate, GateAt: 1},
		mockmodel.Reply{Match: "over a crash", Text: []string{"back ", "again"}, Times: 2},
	)
	// Not of this test's life: the connection hears what comes after it, too.
	l, err := s.connect(within(t, patience))
	if err != nil {
		t.Fatal(err)
	}
	runID := id.UUID()
	l.call(t, "agent", protocol.AgentParams{Message: "over a crash", SessionKey: "agent:main:crash", IdempotencyKey: runID}, nil)
	l.await(within(t, patience), t, "a delta", func(e event) bool { return e.RunID == runID && e.Stream == protocol.StreamAssistant })
	pids, err := s.processes("runner")
	if err != nil || len(pids) == 0 {
		l.Close()
		lacksf(t, "the runner is no process of this machine: it cannot be killed (%v)", err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatalf("kill %d: %v", pid, err)
		}
	}
	began := time.Now()
	s.model.Open(gate)
	return func(t *testing.T) {
		defer l.Close()
		w := l.wait(t, runID, recoverWithin)
		if w.Status != protocol.StatusOK || w.TerminalReply == nil || w.TerminalReply.Text != "back again" {
			t.Fatalf("%+v", w)
		}
		figure(t, s.Level, "end of a run after kill -9", []time.Duration{time.UnixMilli(w.EndedAt).Sub(began)})
		l.await(within(t, patience), t, "the end", func(e event) bool { return e.RunID == runID && e.phase() == protocol.LifecycleEnd })
		if bad := unbroken(l.of(runID, protocol.EventAgent), 1); bad != "" {
			t.Error(bad)
		}
		if got, want := l.history(t, "agent:main:crash"), []string{"user:over a crash", "assistant:back again"}; !slices.Equal(got, want) {
			t.Errorf("history: %q", got)
		}
	}
}

// end takes the stack away.
func (s *stack) end(t *testing.T) {
	t.Helper()
	cmd := exec.Command(filepath.Join("..", "..", "scripts", "destroy.sh"), s.options()...)
	cmd.Env = s.env
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("destroy.sh: %v\n%s", err, out)
	}
	figure(t, s.Level, "scripts/destroy.sh", []time.Duration{time.Since(began)})
}
