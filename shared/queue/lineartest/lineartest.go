// Package lineartest judges whether the lanes of a queue are linearizable: several
// senders fill a few groups while handlers empty them, some answers to senders get lost
// and are asked for again, some handlers fail, and a checker (porcupine) looks for an
// order of all calls that a simple line for each group would give.
//
// Guarantees: a message whose answer was lost may have been taken at any time behind its
// begin, or never; what comes behind the last message of a group is noticed as lost.
// Check also runs queues that are wrong on purpose, and fails where the checker takes
// them. The adapter under test needs a visibility timeout of seconds, and lanes as
// queuetest.Lanes has them.
package lineartest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"laneway/shared/queue"
)

const (
	groups   = 3
	senders  = 3
	messages = 8 // of a sender
	thinking = 30 * time.Second
	patience = 60 * time.Second
)

// Queue is one under test, empty and used for one history only.
type Queue struct {
	queue.Sender
	// Receive is the Run of the receiving side.
	Receive func(ctx context.Context, lane, timer queue.Handler) error
}

// Check runs a history on a queue, and some on wrong ones that are made of it.
func Check(t *testing.T, open func(*testing.T) Queue) {
	t.Helper()
	t.Run("answers are lost", func(t *testing.T) {
		t.Parallel()
		q := open(t)
		seed := rand.Uint64()
		q.Sender = &lossy{Sender: q.Sender, rnd: rand.New(rand.NewPCG(seed, 0))}
		h := record(t, q, seed)
		if got := porcupine.CheckOperationsTimeout(model(), h, thinking); got != porcupine.Ok {
			t.Fatalf("seed %d: %s; the history: %+v", seed, got, h)
		}
	})
	for name, wrong := range wrongSenders() {
		t.Run("refused: "+name, func(t *testing.T) {
			t.Parallel()
			q := open(t)
			q.Sender = wrong(q.Sender)
			if got := porcupine.CheckOperationsTimeout(model(), record(t, q, rand.Uint64()), thinking); got != porcupine.Illegal {
				t.Errorf("a history of a queue that is wrong is %s", got)
			}
		})
	}
}

// recorder is a history in the making.
type recorder struct {
	now   atomic.Int64
	mu    sync.Mutex
	calls []porcupine.Operation
	fails map[string]bool
	ends  chan struct{} // the last message of a group was handled
}

func (r *recorder) note(client int, in input, out output, begun, ended int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, porcupine.Operation{ClientId: client, Input: in, Call: begun, Output: out, Return: ended})
}

// end is the body of the last message of each group.
const end = "end"

func record(t *testing.T, q Queue, seed uint64) []porcupine.Operation {
	t.Helper()
	r := &recorder{fails: make(map[string]bool), ends: make(chan struct{}, groups)}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	received := make(chan error, 1)
	go func() { received <- q.Receive(ctx, r.handle, nil) }()
	var wg sync.WaitGroup
	for n := range senders {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(n+1)))
			for i := range messages {
				body := fmt.Sprintf("%d/%d", n, i)
				if rnd.IntN(8) == 0 {
					r.failOnce(body)
				}
				group := i // each group gets some of each sender
				if i >= groups {
					group = rnd.IntN(groups)
				}
				r.send(t, q, n, group, body)
				if rnd.IntN(4) == 0 { // the same once more
					r.send(t, q, n, group, body)
				}
			}
		})
	}
	wg.Wait()
	for g := range groups {
		r.send(t, q, senders, g, end+strconv.Itoa(g))
	}
	for range groups {
		select {
		case <-r.ends:
		case <-ctx.Done():
			t.Fatal("the last messages do not come")
		}
	}
	stop()
	if err := <-received; err != nil {
		t.Errorf("Run: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

func (r *recorder) failOnce(body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails[body] = true
}

// send sends until there is an answer; the body is the deduplication id.
func (r *recorder) send(t *testing.T, q Queue, client, group int, body string) {
	t.Helper()
	in := input{group: group, body: body}
	for {
		begun := r.now.Add(1)
		err := q.Send(t.Context(), queue.Main, "g"+strconv.Itoa(group), "d"+body, []byte(body))
		ended := r.now.Add(1)
		switch {
		case errors.Is(err, errLost):
			r.note(client, in, output{unknown: true}, begun, math.MaxInt64)
			continue
		case err != nil:
			t.Errorf("Send: %v", err)
			return
		}
		r.note(client, in, output{}, begun, ended)
		return
	}
}

var errFails = errors.New("this one fails")

// handle takes a message, or fails.
func (r *recorder) handle(_ context.Context, m queue.Message) error {
	begun := r.now.Add(1)
	group, err := strconv.Atoi(m.Group[1:])
	if err != nil {
		return err
	}
	body := string(m.Body)
	r.mu.Lock()
	fails := r.fails[body]
	delete(r.fails, body)
	r.mu.Unlock()
	in, out := input{group: group, body: body, receive: true}, output{failed: fails}
	r.note(senders+1+group, in, out, begun, r.now.Add(1))
	if fails {
		return errFails
	}
	if body == end+strconv.Itoa(group) {
		r.ends <- struct{}{}
	}
	return nil
}
