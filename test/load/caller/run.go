package caller

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Seen is what came of one run. A time is zero if it did not happen.
type Seen struct {
	Sent     time.Time // just before the request was handed to the socket
	Accepted time.Time // the first answer
	First    time.Time // the first event with text
	Last     time.Time // the last one, by the stream that has the run's own text
	Final    time.Time // the second answer

	Status     string // in the second answer
	Text       string // what the text events of the run's own stream make together
	Events     int    // of the run, of any kind
	EventBytes int    // of them, as they came over the wire
}

// Run is a run that was asked for.
type Run struct {
	c    *Client
	id   string
	req  string
	done chan struct{} // closed by the second answer

	// Under the client's mu:
	seen Seen
	text strings.Builder
	err  error
}

// Start asks for a run and does not wait. The id is the run's idempotency key.
func (c *Client) Start(ctx context.Context, session, id, message string) (*Run, error) {
	r := &Run{c: c, id: id, done: make(chan struct{})}
	c.mu.Lock()
	c.runs[id] = r
	r.seen.Sent = time.Now()
	c.mu.Unlock()
	var err error
	r.req, err = c.send(ctx, "agent", map[string]any{"message": message, "sessionKey": session, "idempotencyKey": id, "deliver": false}, r.answer)
	if err != nil {
		c.mu.Lock()
		delete(c.runs, id)
		c.mu.Unlock()
		return nil, err
	}
	return r, nil
}

// Wait waits for the run's second answer.
func (r *Run) Wait(ctx context.Context) (Seen, error) {
	c := r.c
	var err error
	select {
	case <-r.done:
	case <-ctx.Done():
		err = fmt.Errorf("no final answer: %w", ctx.Err())
	case <-c.done:
		err = c.cause()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.runs, r.id)
	delete(c.calls, r.req)
	if err == nil {
		err = r.err
	}
	r.seen.Text = r.text.String()
	return r.seen, err
}

// Accepted says whether the first answer has come.
func (r *Run) Accepted() bool {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	return !r.seen.Accepted.IsZero()
}

func (r *Run) answer(f frame, at time.Time) {
	var p struct {
		Status string `json:"status"`
	}
	_ = json.Unmarshal(f.Payload, &p) // without one it is no first answer
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	switch {
	case !r.seen.Final.IsZero():
		return
	case f.OK && p.Status == "accepted":
		if r.seen.Accepted.IsZero() {
			r.seen.Accepted = at
		}
		return
	}
	r.seen.Final, r.seen.Status = at, p.Status
	r.err = f.failure()
	if r.err == nil && p.Status != "ok" {
		r.err = fmt.Errorf("the run ended as %q", p.Status)
	}
	close(r.done)
}

// event notes an event of a run. The agent stream says what is new in `delta` and the
// whole in `text`; the chat stream is a second view of the same.
func (c *Client) event(f frame, s stamped) {
	var p struct {
		RunID  string `json:"runId"`
		Stream string `json:"stream"`
		State  string `json:"state"`
		Data   struct {
			Delta   string `json:"delta"`
			Replace bool   `json:"replace"`
			Text    string `json:"text"`
		} `json:"data"`
	}
	if json.Unmarshal(f.Payload, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.runs[p.RunID]
	if r == nil {
		return
	}
	r.seen.Events++
	r.seen.EventBytes += len(s.data)
	text := f.Event == "agent" && p.Stream == "assistant"
	if r.seen.First.IsZero() && (text || f.Event == "chat" && p.State == "delta") {
		r.seen.First = s.at
	}
	if !text {
		return
	}
	r.seen.Last = s.at
	if p.Data.Replace {
		r.text.Reset()
		r.text.WriteString(cmp.Or(p.Data.Text, p.Data.Delta))
		return
	}
	r.text.WriteString(p.Data.Delta)
}
