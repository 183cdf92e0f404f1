// Package provider is the model of the load measurement: an OpenAI-compatible server
// that does little else than to answer at once and to note when.
//
// Guarantees: a request is stamped before anything of it is read, a piece of text
// after it was handed to the socket; a tag's plan and records are its own, so that
// runs measured side by side do not mix; nothing is computed per piece but its bytes,
// so that the measured gateway is what takes the time. It is quicker and knows less
// than mockmodel, which is for tests.
package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Model is the id of the one model.
const Model = "mock-model"

// mark comes before the tag in a user message; the last one in a request is whose turn
// it is.
const mark = "#run:"

// Message is a user message that carries a tag.
func Message(tag string) string { return "Measured turn " + mark + tag + " " }

// Plan says how the requests of a tag are answered. The zero value is the instant
// model: ten pieces of 20 bytes, as fast as they are taken.
type Plan struct {
	Deltas int           // pieces of text; 0: 10
	Bytes  int           // of each; 0: 20
	Wait   time.Duration // before the first piece
	Over   time.Duration // what the pieces are spread over; 0: nothing
	Rounds int           // answers that ask for Tool before the text; -1: all
	Tool   string
	Args   string // of the tool, as JSON text
}

// Request is what was noted of one request.
type Request struct {
	Arrived time.Time // its header was read
	First   time.Time // the first piece of text, or the tool call, was written
	Last    time.Time // the last one
	Done    time.Time // the answer was written
	Bytes   int       // of its body
	Result  string    // the last tool result in it, as JSON text, cut
}

// Server is a running provider.
type Server struct {
	// URL is its base (…/v1).
	URL string

	http *http.Server
	done chan struct{} // closed when the listener has ended

	mu   sync.Mutex
	runs map[string]*tagged
}

type tagged struct {
	plan     Plan
	requests []Request
}

// Start serves on a free port of this machine.
func Start() (*Server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + ln.Addr().String() + "/v1", done: make(chan struct{}), runs: map[string]*tagged{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"`+Model+`","object":"model","owned_by":"mock"}]}`)
	})
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(ln) // ends with Close
	}()
	return s, nil
}

// Close ends the server and all answers.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Expect sets the plan of a tag.
func (s *Server) Expect(tag string, p Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[tag] = &tagged{plan: p}
}

// Requests are those of a tag so far, in the order of their arrival.
func (s *Server) Requests(tag string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[tag]; r != nil {
		return append([]Request(nil), r.requests...)
	}
	return nil
}

// Forget drops what is known of a tag.
func (s *Server) Forget(tag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, tag)
}

// begin notes a request; of a tag that nobody expects it keeps nothing.
func (s *Server) begin(tag string, r Request) (p Plan, round int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.runs[tag]
	if known == nil {
		return Plan{}, 0
	}
	known.requests = append(known.requests, r)
	return known.plan, len(known.requests) - 1
}

func (s *Server) end(tag string, round int, r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.runs[tag]; known != nil && round < len(known.requests) {
		known.requests[round] = r
	}
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	note := Request{Arrived: time.Now()}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	note.Bytes = len(body)
	tag := tagOf(body)
	note.Result = resultIn(body)
	plan, round := s.begin(tag, note)
	if !bytes.Contains(body, []byte(`"stream":true`)) && !bytes.Contains(body, []byte(`"stream": true`)) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"chatcmpl-load","object":"chat.completion","model":"`+Model+
			`","choices":[{"index":0,"message":{"role":"assistant","content":"whole"},"finish_reason":"stop"}],"usage":`+usage+`}`)
		note.Done = time.Now()
	} else {
		a := answer{w: w, flush: http.NewResponseController(w).Flush, ctx: r.Context(), note: &note}
		a.stream(plan, plan.Rounds < 0 || round < plan.Rounds)
	}
	s.end(tag, round, note)
}

// tagOf is the tag of the last user message that has one.
func tagOf(body []byte) string {
	at := bytes.LastIndex(body, []byte(mark))
	if at < 0 {
		return ""
	}
	rest := body[at+len(mark):]
	end := 0
	for end < len(rest) && (rest[end] == '-' || rest[end] >= '0' && rest[end] <= '9' || rest[end] >= 'a' && rest[end] <= 'z') {
		end++
	}
	return string(rest[:end])
}

// resultIn is the last tool result of a request: the measurement looks at it to know
// that the tool really ran.
func resultIn(body []byte) string {
	if !bytes.Contains(body, []byte(`"tool_call_id"`)) {
		return ""
	}
	var in struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if json.Unmarshal(body, &in) != nil {
		return ""
	}
	for _, m := range slices.Backward(in.Messages) {
		if m.Role == "tool" {
			text := m.Content
			return string(text[:min(len(text), 4096)])
		}
	}
	return ""
}

// answer is one streamed answer.
type answer struct {
	w     http.ResponseWriter
	flush func() error
	ctx   context.Context
	note  *Request
}

const (
	chunk = `data: {"id":"chatcmpl-load","object":"chat.completion.chunk","created":1,"model":"` + Model + `","choices":[{"index":0,"delta":`
	usage = `{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}`
	last  = `data: {"id":"chatcmpl-load","object":"chat.completion.chunk","created":1,"model":"` + Model + `","choices":[],"usage":` + usage + "}\n\ndata: [DONE]\n\n"
)

func (a *answer) stream(p Plan, tool bool) {
	a.w.Header().Set("Content-Type", "text/event-stream")
	if p.Wait > 0 && !sleep(a.ctx, p.Wait) {
		return
	}
	reason := "stop"
	if tool {
		reason = "tool_calls"
		a.call(p)
	} else if !a.text(p) {
		return
	}
	a.note.Last = time.Now()
	_, _ = io.WriteString(a.w, chunk+`{},"finish_reason":"`+reason+"\"}]}\n\n"+last)
	_ = a.flush()
	a.note.Done = time.Now()
}

func (a *answer) call(p Plan) {
	name, _ := json.Marshal(p.Tool)
	args, _ := json.Marshal(p.Args)
	_, _ = io.WriteString(a.w, chunk+`{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":`+
		string(name)+`,"arguments":`+string(args)+"}}]},\"finish_reason\":null}]}\n\n")
	_ = a.flush()
	a.note.First = time.Now()
}

// text writes the pieces; false: nobody reads them any more.
func (a *answer) text(p Plan) bool {
	n, size := p.Deltas, p.Bytes
	if n == 0 {
		n = 10
	}
	if size == 0 {
		size = 20
	}
	begun := time.Now()
	line := make([]byte, 0, 512)
	for i := range n {
		if p.Over > 0 {
			// The grain of a timer is coarser than the pace of many small pieces: they
			// come in the bursts that keep to the time.
			due := p.Over * time.Duration(i) / time.Duration(n)
			if ahead := due - time.Since(begun); ahead > time.Millisecond && !sleep(a.ctx, ahead) {
				return false
			}
		}
		line = append(line[:0], chunk+`{"role":"assistant","content":"`...)
		line = appendPiece(line, i, size)
		line = append(line, "\"},\"finish_reason\":null}]}\n\n"...)
		if _, err := a.w.Write(line); err != nil {
			return false
		}
		if err := a.flush(); err != nil {
			return false
		}
		if i == 0 {
			a.note.First = time.Now()
		}
	}
	return true
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
