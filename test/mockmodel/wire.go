package mockmodel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const maxBody = 64 << 20

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]any{"object": "list", "data": []any{
		map[string]any{"id": Model, "object": "model", "owned_by": "mock"},
	}})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return
	}
	request, err := parse(body)
	if err != nil {
		http.Error(w, `{"error":{"message":"not a chat completion request","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	defer s.watch(r.Context(), request)()
	reply := s.accept(request)
	switch {
	case reply.Status != 0:
		refuse(w, reply)
	case request.Stream:
		(&stream{s: s, w: w, r: r, reply: reply}).run()
	default:
		s.whole(w, r, reply)
	}
}

func refuse(w http.ResponseWriter, reply Reply) {
	w.Header().Set("Content-Type", "application/json")
	if reply.RetryAfter != "" {
		w.Header().Set("Retry-After", reply.RetryAfter)
	}
	w.WriteHeader(reply.Status)
	_, _ = io.WriteString(w, cmp.Or(reply.Body, `{"error":{"message":"scripted failure","type":"mock_error"}}`))
}

// parse reads what of a request a test looks at.
func parse(body []byte) (Request, error) {
	var in struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role       string          `json:"role"`
			Content    json.RawMessage `json:"content"`
			ToolCallID string          `json:"tool_call_id"`
			ToolCalls  []struct {
				Function struct {
					Name string `json:"name"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, err
	}
	r := Request{At: time.Now(), Model: in.Model, Stream: in.Stream, Raw: body}
	for _, m := range in.Messages {
		out := Message{Role: m.Role, Text: Text(m.Content), ToolCallID: m.ToolCallID}
		for _, c := range m.ToolCalls {
			out.Calls = append(out.Calls, c.Function.Name)
		}
		r.Messages = append(r.Messages, out)
	}
	for _, t := range in.Tools {
		r.Tools = append(r.Tools, t.Function.Name)
	}
	return r, nil
}

// Text is a content that is a string, or a list of parts.
func Text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// stream is one streamed reply.
type stream struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	reply Reply
	piece int
}

func (st *stream) run() {
	st.w.Header().Set("Content-Type", "text/event-stream")
	st.w.WriteHeader(http.StatusOK)
	st.flush()
	st.delta(map[string]any{"role": "assistant", "content": ""}, nil)
	for _, text := range st.reply.Thinking {
		if !st.next() {
			return
		}
		st.delta(map[string]any{"reasoning_content": text}, nil)
	}
	for _, text := range st.reply.Text {
		if !st.next() {
			return
		}
		st.delta(map[string]any{"content": text}, nil)
	}
	for i, c := range st.reply.Calls {
		if !st.next() {
			return
		}
		st.call(i, c)
	}
	// A gate behind the last piece, or of a reply without pieces.
	if st.reply.GateAt >= st.piece && !st.atGate() {
		return
	}
	switch {
	case st.reply.Stall:
		st.wait(nil)
	case st.reply.Cut:
		panic(http.ErrAbortHandler) // net/http's way to break a connection
	default:
		st.end()
	}
}

// call sends a tool call in two pieces, as providers do.
func (st *stream) call(index int, c Call) {
	half := len(c.Arguments) / 2
	st.delta(map[string]any{"tool_calls": []any{map[string]any{
		"index": index, "id": c.ID, "type": "function",
		"function": map[string]any{"name": c.Name, "arguments": c.Arguments[:half]},
	}}}, nil)
	st.delta(map[string]any{"tool_calls": []any{map[string]any{
		"index": index, "function": map[string]any{"arguments": c.Arguments[half:]},
	}}}, nil)
}

func (st *stream) end() {
	st.delta(map[string]any{}, finish(st.reply))
	st.send(map[string]any{"id": "chatcmpl-mock", "object": "chat.completion.chunk", "model": Model, "choices": []any{}, "usage": usage(st.reply)})
	_, _ = io.WriteString(st.w, "data: [DONE]\n\n")
	st.flush()
}

func finish(r Reply) string {
	if len(r.Calls) > 0 {
		return cmp.Or(r.Finish, "tool_calls")
	}
	return cmp.Or(r.Finish, "stop")
}

func usage(r Reply) Usage {
	if r.Usage != nil {
		return *r.Usage
	}
	n := len(r.Text) + len(r.Thinking) + len(r.Calls)
	return Usage{Prompt: 10, Completion: n, Total: 10 + n}
}

// next waits for the time of the next piece; false: the client or the server left.
func (st *stream) next() bool {
	if st.reply.Gate != "" && st.piece == st.reply.GateAt && !st.atGate() {
		return false
	}
	st.piece++
	if st.reply.PauseMs <= 0 {
		return true
	}
	timer := time.NewTimer(time.Duration(st.reply.PauseMs) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-st.r.Context().Done():
	case <-st.s.stop:
	}
	return false
}

func (st *stream) atGate() bool {
	if st.reply.Gate == "" {
		return true
	}
	st.s.mu.Lock()
	g := st.s.gate(st.reply.Gate)
	g.waiting++
	st.s.change()
	st.s.mu.Unlock()
	defer func() {
		st.s.mu.Lock()
		g.waiting--
		st.s.mu.Unlock()
	}()
	return st.wait(g.open)
}

// wait waits for a channel (nil: for ever); false: the client or the server left.
func (st *stream) wait(c <-chan struct{}) bool {
	select {
	case <-c:
		return st.r.Context().Err() == nil
	case <-st.r.Context().Done():
	case <-st.s.stop:
	}
	return false
}

func (st *stream) delta(delta map[string]any, finish any) {
	st.send(map[string]any{
		"id": "chatcmpl-mock", "object": "chat.completion.chunk", "model": Model,
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
	})
}

func (st *stream) send(chunk any) {
	b, err := json.Marshal(chunk)
	if err != nil {
		return // built here, of strings and numbers
	}
	_, _ = fmt.Fprintf(st.w, "data: %s\n\n", b) // a client that has left is seen at the next piece
	st.flush()
}

func (st *stream) flush() {
	if f, ok := st.w.(http.Flusher); ok {
		f.Flush()
	}
}

// whole answers a request that did not ask for a stream.
func (s *Server) whole(w http.ResponseWriter, r *http.Request, reply Reply) {
	st := &stream{s: s, w: w, r: r, reply: reply}
	if !st.atGate() {
		return
	}
	if reply.Stall {
		st.wait(nil)
		return
	}
	if reply.Cut {
		panic(http.ErrAbortHandler) // net/http's way to break a connection
	}
	message := map[string]any{"role": "assistant", "content": strings.Join(reply.Text, "")}
	var calls []any
	for _, c := range reply.Calls {
		calls = append(calls, map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Arguments}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	writeJSON(w, map[string]any{
		"id": "chatcmpl-mock", "object": "chat.completion", "model": Model, "usage": usage(reply),
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish(reply)}},
	})
}
