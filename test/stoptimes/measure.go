// Package stoptimes measures how long a stop takes: from chat.abort to the moment at
// which the provider sees its connection closed. It is not a test of limits; it gives
// the distribution, and fails only where a stop did not stop.
package stoptimes

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"laneway/shared/client"
	"laneway/shared/protocol"
	"laneway/test/mockmodel"
)

// EnvAborts is how many stops are measured.
const EnvAborts = "LANEWAY_ABORTS"

// patience bounds what is waited for; nothing takes so long when things are right.
const patience = time.Minute

// Measure stops n runs through a connection of a gateway whose model is model, each
// when the model has begun to answer, and gives a line of times from chat.abort to
// either end: the model's connection closed, and agent.wait answered.
func Measure(t *testing.T, n int, c *client.Conn, model *mockmodel.Server) (lines []string) {
	t.Helper()
	gone := &leaving{at: map[string]chan time.Time{}}
	model.OnLeave(func(r mockmodel.Request) { gone.of(r.LastUser()) <- time.Now() })
	model.Script(mockmodel.Reply{Match: asked, Text: []string{"one ", "two ", "three "}, Stall: true, Times: -1})
	var times, ends []time.Duration
	for i := range n {
		closed, ended := stop(t, c, model, gone, i)
		times, ends = append(times, closed), append(ends, ended)
	}
	return []string{
		line("chat.abort to the model's connection closed", times),
		line("chat.abort to the run's end, as agent.wait tells it", ends),
	}
}

// asked begins each message.
const asked = "stop me "

// leaving notes when clients of the model leave, by the message that they asked about.
type leaving struct {
	mu sync.Mutex
	at map[string]chan time.Time
}

func (l *leaving) of(message string) chan time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.at[message]
	if c == nil {
		c = make(chan time.Time, 4)
		l.at[message] = c
	}
	return c
}

// stop begins a run, waits until the model writes, stops it, and says how long it took.
func stop(t *testing.T, c *client.Conn, model *mockmodel.Server, gone *leaving, i int) (closed, ended time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	key, id := fmt.Sprintf("agent:main:stop-%d", i%10), fmt.Sprintf("stop-%d", i)
	message := asked + id
	call := func(method string, params, out any) {
		if err := c.Call(ctx, method, params, out); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
	}
	call("chat.send", map[string]any{"sessionKey": key, "message": message, "idempotencyKey": id}, nil)
	for {
		changes := model.Changes()
		if slices.ContainsFunc(model.Requests(), func(r mockmodel.Request) bool { return r.LastUser() == message }) {
			break
		}
		select {
		case <-changes:
		case <-ctx.Done():
			t.Fatalf("the model was not asked about %q", message)
		}
	}
	// Anywhere between two looks of the holder.
	select {
	case <-time.After(time.Duration(50+i*37%700) * time.Millisecond):
	case <-ctx.Done():
	}
	began := time.Now()
	var ab protocol.ChatAborted
	call("chat.abort", map[string]any{"sessionKey": key, "runId": id}, &ab)
	if !ab.Aborted {
		t.Fatalf("%s was not stopped", id)
	}
	select {
	case at := <-gone.of(message):
		closed = at.Sub(began)
	case <-ctx.Done():
		t.Fatalf("%s: the model's connection stays open", id)
	}
	var w protocol.Wait
	call("agent.wait", map[string]any{"runId": id, "timeoutMs": 20000}, &w)
	if w.StopReason != "rpc" {
		t.Fatalf("%s: %+v", id, w)
	}
	return closed, time.Since(began)
}

func line(what string, d []time.Duration) string {
	slices.Sort(d)
	at := func(share float64) time.Duration {
		return d[min(int(float64(len(d))*share), len(d)-1)].Round(time.Millisecond)
	}
	return fmt.Sprintf("%s: %d stops, median %s, p90 %s, p99 %s, longest %s", what, len(d), at(0.5), at(0.9), at(0.99), d[len(d)-1].Round(time.Millisecond))
}
