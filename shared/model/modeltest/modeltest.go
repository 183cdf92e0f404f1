// Package modeltest checks the promises of package model for any provider, and
// has the small servers that the adapters' tests talk to.
package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/model"
)

// Turn is what a stream gave.
type Turn struct {
	Texts    []string // one for each text part
	Thinking string
	Signed   []model.Block // closed thinking blocks
	Calls    []model.Block
	Usage    model.Usage // the last one
	Done     *model.Done
	Err      *model.Error
}

// Text is all the text.
func (t Turn) Text() string { return strings.Join(t.Texts, "") }

// Collect ranges over a stream to its end and fails the test where it breaks a
// promise of package model.
func Collect(tb testing.TB, seq iter.Seq2[model.Part, error]) Turn {
	tb.Helper()
	var (
		turn  Turn
		ended bool
		ids   = map[string]bool{}
	)
	for p, err := range seq {
		if ended {
			tb.Errorf("a part or error after the end: %+v, %v", p, err)
		}
		if err != nil {
			ended = true
			if !errors.As(err, &turn.Err) {
				tb.Errorf("error is a %T, not a *model.Error: %v", err, err)
			}
			continue
		}
		if n := fields(p); n != 1 {
			tb.Errorf("a part with %d fields set: %+v", n, p)
		}
		switch {
		case p.Text != "":
			turn.Texts = append(turn.Texts, p.Text)
		case p.Thinking != "":
			turn.Thinking += p.Thinking
		case p.ThinkingDone != nil:
			turn.Signed = append(turn.Signed, *p.ThinkingDone)
		case p.ToolCall != nil:
			c := *p.ToolCall
			if c.ID == "" || ids[c.ID] || c.Name == "" || !json.Valid(c.Arguments) {
				tb.Errorf("tool call without an id of its own, a name or valid arguments: %+v", c)
			}
			ids[c.ID] = true
			turn.Calls = append(turn.Calls, c)
		case p.Usage != nil:
			turn.Usage = *p.Usage
		case p.Done != nil:
			ended = true
			turn.Done = p.Done
		}
	}
	if !ended {
		tb.Error("the stream ended with neither Done nor an error")
	}
	return turn
}

func fields(p model.Part) int {
	n := 0
	for _, set := range []bool{
		p.Text != "", p.Thinking != "", p.ThinkingDone != nil, p.ToolCall != nil, p.Usage != nil, p.Done != nil,
	} {
		if set {
			n++
		}
	}
	return n
}

// NoSecrets fails if any error of err's chain shows one of the secrets.
func NoSecrets(tb testing.TB, err error, secrets ...string) {
	tb.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, shown := range []string{e.Error(), fmt.Sprintf("%v %+v %#v", e, e, e)} {
			for _, s := range secrets {
				if strings.Contains(shown, s) {
					tb.Errorf("%T shows the secret %q: %s", e, s, shown)
				}
			}
		}
	}
}

// Call is a request that a Server got.
type Call struct {
	Path   string
	Header http.Header
	Body   []byte
}

// Server is an HTTP server with a scripted answer that keeps what it was asked.
type Server struct {
	URL string
	// Closed gets a value when a client has closed the connection of a call that
	// was not answered to its end.
	Closed chan struct{}

	mu    sync.Mutex
	calls []Call
}

// Serve starts a server that answers with h and is closed with the test.
func Serve(tb testing.TB, h http.HandlerFunc) *Server {
	tb.Helper()
	s := &Server{Closed: make(chan struct{}, 16)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone; it will say so itself
		}
		s.mu.Lock()
		s.calls = append(s.calls, Call{r.URL.Path, r.Header.Clone(), body})
		s.mu.Unlock()
		h(w, r)
		if r.Context().Err() != nil {
			s.Closed <- struct{}{}
		}
	}))
	tb.Cleanup(srv.Close)
	s.URL = srv.URL
	return s
}

// Calls gives the requests so far.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// AwaitClosed fails the test unless the client's end of a call is noticed soon.
func (s *Server) AwaitClosed(tb testing.TB) {
	tb.Helper()
	select {
	case <-s.Closed:
	case <-time.After(10 * time.Second):
		tb.Error("the server never saw the connection closed")
	}
}

// Events writes server-sent events with the given data, each flushed.
func Events(w http.ResponseWriter, data ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, d := range data {
		fmt.Fprintf(w, "data: %s\n\n", d)
		Flush(w)
	}
}

// Flush sends what was written so far.
func Flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// Cut breaks the connection of a response in its middle.
func Cut(w http.ResponseWriter) {
	h, ok := w.(http.Hijacker)
	if !ok {
		return
	}
	if conn, _, err := h.Hijack(); err == nil {
		_ = conn.Close() // breaking it is the point
	}
}
