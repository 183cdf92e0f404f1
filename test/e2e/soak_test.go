package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"laneway/shared/client"
	"laneway/shared/id"
	"laneway/shared/protocol"
	"laneway/test/mockmodel"
)

const (
	soakFunction = "2"             // seconds of an invocation of the runner
	soakEvery    = 5 * time.Second // between two deaths
	soakSteps    = 4               // calls of a turn before its answer: longer than an invocation
	// soakTurn bounds a turn: some deaths, each of which may take 90 seconds.
	soakTurn = 10 * time.Minute
)

// TestSoak: a conversation with a deployed stack whose runner may last two seconds and
// is killed every five, by the id of its process, watched by the reference client on one
// connection: each turn's text is complete, numbers are in order, there is one end. A
// turn may be given up where three attempts in a row died before they got anywhere: the
// client is told so. SOAK says how long.
func TestSoak(t *testing.T) {
	on(t)
	d, err := time.ParseDuration(os.Getenv("SOAK"))
	if err != nil {
		t.Skip("not run: a conversation while the runner dies needs SOAK=30m (make soak-endpoint)")
	}
	s := newStack(t, "soak-"+id.UUID()[:6])
	s.up(t, "runner.timeout="+soakFunction)
	t.Cleanup(func() { s.end(t) })
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	deaths := 0
	var wg sync.WaitGroup
	wg.Go(func() { deaths = s.killRunners(ctx, t) })
	var took []time.Duration
	gaveUp := 0
	l := s.dial(t)
	for n := 0; ctx.Err() == nil; n++ {
		began := time.Now()
		if !s.soakTurn(t, l, n) {
			gaveUp++
		}
		took = append(took, time.Since(began))
	}
	stop()
	wg.Wait()
	if deaths == 0 || len(took) == gaveUp {
		t.Fatalf("%d turns, %d given up, %d deaths: the test says nothing", len(took), gaveUp, deaths)
	}
	figure(t, s.Level, fmt.Sprintf("turn of a soak, %d deaths, %d given up", deaths, gaveUp), took)
}

// killRunners kills the runner's processes until the time is over, and counts them.
func (s *stack) killRunners(ctx context.Context, t *testing.T) (deaths int) {
	tick := time.NewTicker(soakEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return deaths
		case <-tick.C:
		}
		pids, err := s.processes("runner")
		if err != nil {
			t.Errorf("the runner is no process of this machine: %v", err)
			return deaths
		}
		for _, pid := range pids {
			switch err := syscall.Kill(pid, syscall.SIGKILL); {
			case err == nil:
				deaths++
			case !errors.Is(err, syscall.ESRCH): // it has ended by itself
				t.Errorf("kill %d: %v", pid, err)
			}
		}
	}
}

// soakTurn is one message and its answer; false: the run was given up.
func (s *stack) soakTurn(t *testing.T, l *listener, n int) bool {
	t.Helper()
	p := protocol.AgentParams{Message: fmt.Sprintf("soak %d.", n), SessionKey: "agent:main:soak", IdempotencyKey: id.UUID()}
	for i := range soakSteps {
		s.model.Script(mockmodel.Reply{Match: p.Message, After: i > 0, PauseMs: 300, Text: []string{"now "}, Calls: []mockmodel.Call{{
			ID: fmt.Sprintf("call_%d", i), Name: "ls", Arguments: `{"path":"` + strings.Repeat("./", i+1) + `"}`,
		}}})
	}
	text := []string{"the ", "whole ", "answer ", "to ", p.Message}
	for _, after := range []bool{true, false} {
		s.model.Script(mockmodel.Reply{Match: p.Message, After: after, Times: -1, PauseMs: 60, Text: text})
	}
	f, err := l.final(within(t, soakTurn), p)
	var refused *client.CallError
	if errors.As(err, &refused) && strings.Contains(refused.Err.Message, "no progress") {
		return false
	}
	if err != nil || f.Status != protocol.StatusOK || !strings.HasSuffix(reply(f), strings.Join(text, "")) {
		t.Fatalf("turn %d: %+v, %v", n, f, err)
	}
	l.await(within(t, patience), t, "the end", func(e event) bool {
		return e.RunID == p.IdempotencyKey && e.phase() == protocol.LifecycleEnd
	})
	if bad := unbroken(l.of(p.IdempotencyKey, protocol.EventAgent), soakSteps*10); bad != "" {
		t.Errorf("turn %d: %s", n, bad)
	}
	return true
}
