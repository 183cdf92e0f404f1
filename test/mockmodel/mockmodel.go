// Package mockmodel is a model provider that does what a test scripts: it speaks
// OpenAI's chat completions over HTTP, streamed or whole, and can also stall, cut
// the connection, refuse, and wait at gates that the test opens.
//
// Guarantees: a scripted reply is used by the first request that it matches, in the
// order in which replies were scripted; each request is recorded before it is
// answered; a gate that was opened stays open; Close ends all replies at once, also
// those that stall or wait. In the process of a test it is used by its methods, from
// other processes by its control paths (control.go).
package mockmodel

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Model is the id of the one model that is offered.
const Model = "mock-model"

// Reply is one scripted answer. The zero value is an empty message that ends well.
type Reply struct {
	// Match says which request it is for: one whose last user message contains it.
	// Empty: any.
	Match string `json:"match,omitempty"`
	// After says that it is for a request whose last message is a tool's result.
	After bool `json:"after,omitempty"`
	// Times is how often it can be used; zero: once; -1: for ever.
	Times int `json:"times,omitempty"`

	// Thinking and Text are streamed in these pieces, Calls follow.
	Thinking []string `json:"thinking,omitempty"`
	Text     []string `json:"text,omitempty"`
	Calls    []Call   `json:"calls,omitempty"`
	// PauseMs is the pause before each piece.
	PauseMs int `json:"pauseMs,omitempty"`
	// Gate names a gate that is waited at before the piece of number GateAt (0: before
	// the first one, but after the response has begun).
	Gate   string `json:"gate,omitempty"`
	GateAt int    `json:"gateAt,omitempty"`
	// Finish is the reason of the end; empty: "stop", or "tool_calls" after calls.
	Finish string `json:"finish,omitempty"`
	// Usage is told at the end; nil: ten tokens in, one out per piece.
	Usage *Usage `json:"usage,omitempty"`

	// Stall goes silent after the pieces, until the client leaves.
	Stall bool `json:"stall,omitempty"`
	// Cut breaks the connection after the pieces.
	Cut bool `json:"cut,omitempty"`
	// Status refuses with an HTTP status and Body, before anything is streamed.
	Status     int    `json:"status,omitempty"`
	Body       string `json:"body,omitempty"`
	RetryAfter string `json:"retryAfter,omitempty"`
}

// Call is a tool call in a reply. Arguments are JSON text.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Usage is what a reply says it cost.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// Request is what came in.
type Request struct {
	At       time.Time       `json:"at"`
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	Messages []Message       `json:"messages"`
	Tools    []string        `json:"tools"`
	Raw      json.RawMessage `json:"raw"` // the whole body
}

// Message is one message of a request, its content as text.
type Message struct {
	Role       string   `json:"role"`
	Text       string   `json:"text"`
	ToolCallID string   `json:"toolCallId,omitempty"`
	Calls      []string `json:"calls,omitempty"` // names of the tools that it calls
}

// LastUser is the text of the last user message.
func (r Request) LastUser() string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "user" {
			return m.Text
		}
	}
	return ""
}

// afterTool says whether the last message is a tool's result.
func (r Request) afterTool() bool {
	return len(r.Messages) > 0 && r.Messages[len(r.Messages)-1].Role == "tool"
}

// Server is a running provider.
type Server struct {
	// URL is its base, as OPENAI_BASE_URL takes it (…/v1).
	URL string

	http *http.Server
	stop chan struct{} // closed by Close
	once sync.Once
	done chan struct{} // closed when the listener has ended

	mu       sync.Mutex
	script   []Reply
	requests []Request
	gates    map[string]*gate
	changed  chan struct{} // closed and replaced at each change that Await looks at
	choose   func(Request) (Reply, bool)
	left     func(Request)
}

type gate struct {
	open    chan struct{}
	isOpen  bool
	waiting int
}

// Start serves on an address of this machine, such as 127.0.0.1:0.
func Start(address string) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{
		URL:  "http://" + listener.Addr().String() + "/v1",
		stop: make(chan struct{}), done: make(chan struct{}),
		gates: map[string]*gate{}, changed: make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("POST /v1/chat/completions", s.completions)
	s.control(mux)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(listener) // ends with Close
	}()
	return s, nil
}

// Close ends the server and every reply.
func (s *Server) Close() error {
	var err error
	s.once.Do(func() {
		close(s.stop)
		err = s.http.Close()
	})
	<-s.done
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Script adds replies.
func (s *Server) Script(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, replies...)
}

// Reset forgets the script, the requests and the gates; who waits at one goes on.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.gates {
		if !g.isOpen {
			close(g.open)
		}
	}
	s.script, s.requests, s.gates = nil, nil, map[string]*gate{}
	s.change()
}

// Choose has f answer what it wants to, before the script; nil: the script answers
// all. f must not call the server.
func (s *Server) Choose(f func(Request) (Reply, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.choose = f
}

// OnLeave has f told of each request whose client went away before its reply ended, as
// soon as that is seen; nil: nobody is.
func (s *Server) OnLeave(f func(Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = f
}

// watch tells of a client that goes away.
func (s *Server) watch(ctx context.Context, r Request) (stop func()) {
	s.mu.Lock()
	left := s.left
	s.mu.Unlock()
	if left == nil {
		return func() {}
	}
	end := context.AfterFunc(ctx, func() { left(r) })
	return func() {
		if end() && ctx.Err() != nil { // the handler saw it first
			left(r)
		}
	}
}

// Requests are all that came, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Open opens a gate.
func (s *Server) Open(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.gate(name); !g.isOpen {
		g.isOpen = true
		close(g.open)
	}
}

// Changes returns a channel that is closed at the next request or arrival at a
// gate; take it before looking.
func (s *Server) Changes() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Waiting is how many replies wait at a gate.
func (s *Server) Waiting(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gate(name).waiting
}

// gate is called under mu.
func (s *Server) gate(name string) *gate {
	g := s.gates[name]
	if g == nil {
		g = &gate{open: make(chan struct{})}
		s.gates[name] = g
	}
	return g
}

// change is called under mu.
func (s *Server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// accept records a request and takes its reply.
func (s *Server) accept(r Request) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	s.change()
	if s.choose != nil {
		if reply, ok := s.choose(r); ok {
			return reply
		}
	}
	for i := range s.script {
		reply := &s.script[i]
		if reply.After != r.afterTool() || !strings.Contains(r.LastUser(), reply.Match) {
			continue
		}
		taken := *reply
		switch {
		case reply.Times < 0:
		case reply.Times > 1:
			reply.Times--
		default:
			s.script = append(s.script[:i], s.script[i+1:]...)
		}
		return taken
	}
	return Reply{Text: []string{"You ", "said: ", r.LastUser()}}
}
