package anthropic

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"laneway/shared/model"
	"laneway/shared/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-ant-key-123"

// setup makes a provider that talks to a server with the given answer.
func setup(tb testing.TB, h http.HandlerFunc) (*Provider, *modeltest.Server) {
	tb.Helper()
	srv := modeltest.Serve(tb, h)
	client := &http.Client{Transport: &http.Transport{}}
	tb.Cleanup(client.CloseIdleConnections)
	p, err := New(Config{
		APIKey: key, BaseURL: srv.URL, HTTPClient: client,
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	})
	if err != nil {
		tb.Fatal(err)
	}
	return p, srv
}

func ask(text string) model.Request {
	return model.Request{Model: "claude-x", Messages: []model.Message{{
		Role: model.User, Content: []model.Block{{Type: model.Text, Text: text}},
	}}}
}

// send writes events as the API does, each with its name.
func send(w http.ResponseWriter, data ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, d := range data {
		name, _, _ := strings.Cut(strings.TrimPrefix(d, `{"type":"`), `"`)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, d)
		modeltest.Flush(w)
	}
}

func events(data ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { send(w, data...) }
}

const (
	begin = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-x","stop_reason":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":1}}}`
	ping  = `{"type":"ping"}`
	end   = `{"type":"message_stop"}`
)

func start(i int, block string) string {
	return `{"type":"content_block_start","index":` + strconv.Itoa(i) + `,"content_block":` + block + `}`
}

func piece(i int, kind, field, value string) string {
	return `{"type":"content_block_delta","index":` + strconv.Itoa(i) + `,"delta":{"type":"` + kind + `","` + field + `":` + strconv.Quote(value) + `}}`
}

func closed(i int) string { return `{"type":"content_block_stop","index":` + strconv.Itoa(i) + `}` }

func stop(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":20}}`
}

// text is a whole text block.
func text(i int, pieces ...string) []string {
	out := []string{start(i, `{"type":"text","text":""}`)}
	for _, p := range pieces {
		out = append(out, piece(i, "text_delta", "text", p))
	}
	return append(out, closed(i))
}

// toolUse is a whole tool_use block.
func toolUse(i int, id, name string, pieces ...string) []string {
	out := []string{start(i, `{"type":"tool_use","id":"`+id+`","name":"`+name+`","input":{}}`)}
	for _, p := range pieces {
		out = append(out, piece(i, "input_json_delta", "partial_json", p))
	}
	return append(out, closed(i))
}

func all(parts ...any) (out []string) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			out = append(out, p)
		case []string:
			out = append(out, p...)
		}
	}
	return out
}

func call(id, name, args string) model.Block {
	return model.Block{Type: model.ToolCall, ID: id, Name: name, Arguments: []byte(args)}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		send   []string
		text   string
		think  string
		signed []model.Block
		calls  []model.Block
		stop   string
		fail   model.Class
	}{
		{name: "text", send: all(begin, ping, text(0, "Hel", "lo"), stop("end_turn"), end), text: "Hello", stop: "stop"},
		{name: "text that comes with the start", send: all(begin, start(0, `{"type":"text","text":"Hel"}`), piece(0, "text_delta", "text", "lo"), closed(0), stop("end_turn"), end), text: "Hello", stop: "stop"},
		{
			name: "signed thinking", send: all(begin, start(0, `{"type":"thinking","thinking":"","signature":""}`),
				piece(0, "thinking_delta", "thinking", "hm, "), piece(0, "thinking_delta", "thinking", "yes"), piece(0, "signature_delta", "signature", "Eo=="), closed(0),
				text(1, "a"), stop("end_turn"), end),
			think: "hm, yes", text: "a", stop: "stop", signed: []model.Block{{Type: model.Thinking, Thinking: "hm, yes", Signature: "Eo=="}},
		},
		{
			name: "thinking that is not shown but signed", send: all(begin, start(0, `{"type":"thinking","thinking":"","signature":""}`), piece(0, "signature_delta", "signature", "Eo=="), closed(0), text(1, "a"), stop("end_turn"), end),
			text: "a", stop: "stop", signed: []model.Block{{Type: model.Thinking, Signature: "Eo=="}},
		},
		{
			name: "encrypted thinking", send: all(begin, start(0, `{"type":"redacted_thinking","data":"xyz"}`), closed(0), text(1, "a"), stop("end_turn"), end),
			text: "a", stop: "stop", signed: []model.Block{{Type: model.Thinking, Signature: "redacted:xyz"}},
		},
		{
			name: "parallel tools", send: all(begin, text(0, "I look"), toolUse(1, "toolu_1", "ls", `{"pa`, `th":"."}`), toolUse(2, "toolu_2", "now"), stop("tool_use"), end),
			text: "I look", calls: []model.Block{call("toolu_1", "ls", `{"path":"."}`), call("toolu_2", "now", `{}`)}, stop: "toolUse",
		},
		{
			name: "interleaved blocks", send: all(begin,
				start(0, `{"type":"tool_use","id":"a","name":"ls","input":{}}`), start(1, `{"type":"tool_use","id":"b","name":"read","input":{}}`),
				piece(1, "input_json_delta", "partial_json", `{"p":`), piece(0, "input_json_delta", "partial_json", `{}`), piece(1, "input_json_delta", "partial_json", `1}`),
				closed(1), closed(0), stop("tool_use"), end),
			calls: []model.Block{call("a", "ls", `{}`), call("b", "read", `{"p":1}`)}, stop: "toolUse",
		},
		{
			name: "input that comes with the start", send: all(begin, start(0, `{"type":"tool_use","id":"a","name":"ls","input":{"path":"."}}`), closed(0), stop("tool_use"), end),
			calls: []model.Block{call("a", "ls", `{"path":"."}`)}, stop: "toolUse",
		},
		{name: "stop sequence", send: all(begin, text(0, "a"), stop("stop_sequence"), end), text: "a", stop: "stop"},
		{name: "max tokens", send: all(begin, text(0, "a"), stop("max_tokens"), end), text: "a", stop: "length"},
		{name: "context window full", send: all(begin, text(0, "a"), stop("model_context_window_exceeded"), end), text: "a", stop: "length"},
		{
			name: "a call cut by max tokens is not made", send: all(begin, toolUse(0, "a", "ls", `{}`), toolUse(1, "b", "write", `{"path":"x","te`), stop("max_tokens"), end),
			calls: []model.Block{call("a", "ls", `{}`)}, stop: "length",
		},
		{name: "a call cut before its arguments is not made", send: all(begin, text(0, "a"), toolUse(1, "b", "write"), stop("max_tokens"), end), text: "a", stop: "length"},
		{name: "refusal", send: all(begin, text(0, "so"), stop("refusal"), end), text: "so", stop: "refusal"},
		{name: "refusal without a word, its calls not made", send: all(begin, toolUse(0, "a", "ls", `{}`), stop("refusal"), end), stop: "refusal"},
		{name: "pause", send: all(begin, stop("pause_turn"), end), stop: "stop"},
		{name: "unknown events, blocks and deltas", send: all(begin, `{"type":"new_event","x":1}`, start(0, `{"type":"server_thing","id":"s"}`), piece(0, "new_delta", "x", "y"), closed(0), text(1, "a"), stop("end_turn"), end), text: "a", stop: "stop"},
		{name: "fields of the wrong type count as absent", send: all(`{"type":"message_start","message":{"usage":{"input_tokens":"many"}}}`, text(0, "a"), stop("end_turn"), end), text: "a", stop: "stop"},
		{name: "delta without a start", send: all(begin, piece(3, "text_delta", "text", "a"), closed(3), stop("end_turn"), end), text: "a", stop: "stop"},
		{name: "end without message_stop", send: all(begin, text(0, "a"), stop("end_turn")), text: "a", stop: "stop"},
		{name: "nothing said", send: all(begin, stop("end_turn"), end), fail: model.EmptyResponse},
		{name: "no bytes at all", fail: model.EmptyResponse},
		{name: "end in mid-stream is a cut", send: all(begin, start(0, `{"type":"text","text":""}`), piece(0, "text_delta", "text", "a")), text: "a", fail: model.Timeout},
		{name: "malformed event", send: all(begin, `{"type":"content_block_delta","ind`), fail: model.Timeout},
		{name: "a call without id", send: all(begin, toolUse(0, "", "ls", `{}`), stop("tool_use"), end), fail: model.Timeout},
		{name: "overloaded in the stream", send: all(begin, text(0, "a"), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), text: "a", fail: model.Overloaded},
		{name: "server error in the stream", send: all(begin, `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`), fail: model.ServerError},
		{name: "rate limit in the stream", send: all(begin, `{"type":"error","error":{"type":"rate_limit_error","message":"x"}}`), fail: model.RateLimit},
		{name: "error without details", send: all(begin, `{"type":"error","error":null}`), fail: model.NoErrorDetails},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p, _ := setup(t, events(row.send...))
			turn := modeltest.Collect(t, p.Stream(t.Context(), ask("hi")))
			if turn.Text() != row.text || turn.Thinking != row.think {
				t.Errorf("text = %q, thinking = %q", turn.Text(), turn.Thinking)
			}
			if !reflect.DeepEqual(turn.Signed, row.signed) {
				t.Errorf("signed = %+v, want %+v", turn.Signed, row.signed)
			}
			if !reflect.DeepEqual(turn.Calls, row.calls) {
				t.Errorf("calls = %+v, want %+v", turn.Calls, row.calls)
			}
			switch {
			case row.fail != "":
				if turn.Err == nil || turn.Err.Class != row.fail {
					t.Errorf("err = %v, want class %s", turn.Err, row.fail)
				}
			case turn.Done == nil || turn.Done.StopReason != row.stop:
				t.Errorf("done = %+v, err = %v, want %s", turn.Done, turn.Err, row.stop)
			}
		})
	}
}

func TestUsageCountsTheCache(t *testing.T) {
	t.Parallel()
	p, _ := setup(t, events(all(begin, text(0, "a"), stop("end_turn"), end)...))
	turn := modeltest.Collect(t, p.Stream(t.Context(), ask("hi")))
	if want := (model.Usage{Input: 10, Output: 20, CacheRead: 100, CacheWrite: 5, Total: 135}); turn.Usage != want {
		t.Errorf("usage = %+v, want %+v", turn.Usage, want)
	}
}

func TestStatusFailures(t *testing.T) {
	t.Parallel()
	body := func(kind, msg string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"` + msg + `"},"request_id":"req_1"}`
	}
	for _, row := range []struct {
		name   string
		status int
		header map[string]string
		body   string
		class  model.Class
		after  time.Duration
		code   string
	}{
		{"429 with Retry-After", 429, map[string]string{"Retry-After": "12"}, body("rate_limit_error", "slow"), model.RateLimit, 12 * time.Second, "rate_limit_error"},
		{"529", 529, nil, body("overloaded_error", "Overloaded"), model.Overloaded, 0, "overloaded_error"},
		{"529 that asks for a retry is not retried here", 529, map[string]string{"X-Should-Retry": "true"}, ``, model.Overloaded, 0, ""},
		{"400 overflow", 400, nil, body("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), model.ContextOverflow, 0, "invalid_request_error"},
		{"400 billing", 400, nil, body("invalid_request_error", "Your credit balance is too low"), model.Billing, 0, "invalid_request_error"},
		{"400 format", 400, nil, body("invalid_request_error", "messages.0: x"), model.Format, 0, "invalid_request_error"},
		{"401", 401, nil, body("authentication_error", "invalid x-api-key"), model.Auth, 0, "authentication_error"},
		{"404", 404, nil, body("not_found_error", "model: claude-x"), model.ModelNotFound, 0, "not_found_error"},
		{"413", 413, nil, body("request_too_large", "x"), model.ContextOverflow, 0, "request_too_large"},
		{"500", 500, nil, body("api_error", "Internal server error"), model.ServerError, 0, "api_error"},
		{"502 with a page", 502, nil, `<html>`, model.ServerError, 0, ""},
		{"504", 504, nil, body("timeout_error", "x"), model.Timeout, 0, "timeout_error"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p, srv := setup(t, func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range row.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(row.status)
				_, _ = w.Write([]byte(row.body))
			})
			turn := modeltest.Collect(t, p.Stream(t.Context(), ask("hi")))
			if turn.Err == nil {
				t.Fatal("no error")
			}
			if e := turn.Err; e.Class != row.class || e.Status != row.status || e.RetryAfter != row.after || e.Provider != "anthropic" || e.Model != "claude-x" {
				t.Errorf("err = %+v", *e)
			}
			if row.code != "" && !strings.Contains(turn.Err.Message, "("+row.code+")") {
				t.Errorf("message = %q lacks the code %s", turn.Err.Message, row.code)
			}
			if n := len(srv.Calls()); n != 1 {
				t.Errorf("%d calls: the adapter must not retry", n)
			}
		})
	}
}

func TestCancelDuringAStallClosesTheConnection(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		cause error
		want  model.Class
	}{
		{"by the caller", nil, model.Aborted},
		{"by the watchdog", model.ErrIdle, model.Timeout},
	} {
		for _, headers := range []bool{true, false} {
			t.Run(row.name+", headers "+strconv.FormatBool(headers), func(t *testing.T) {
				t.Parallel()
				reached := make(chan struct{})
				p, srv := setup(t, func(w http.ResponseWriter, r *http.Request) {
					if headers {
						send(w, begin, ping)
					}
					close(reached)
					<-r.Context().Done()
				})
				ctx, cancel := context.WithCancelCause(t.Context())
				go func() { <-reached; cancel(row.cause) }()
				turn := modeltest.Collect(t, p.Stream(ctx, ask("hi")))
				if turn.Err == nil || turn.Err.Class != row.want {
					t.Errorf("err = %v, want class %s", turn.Err, row.want)
				}
				srv.AwaitClosed(t)
			})
		}
	}
}

func TestLeavingTheRangeClosesTheConnection(t *testing.T) {
	t.Parallel()
	p, srv := setup(t, func(w http.ResponseWriter, r *http.Request) {
		send(w, all(begin, text(0, "one"))...)
		<-r.Context().Done()
	})
	for part, err := range p.Stream(t.Context(), ask("hi")) {
		if err != nil || part.Text == "one" {
			break
		}
	}
	srv.AwaitClosed(t)
}

func TestConnectionCut(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"before the headers": func(w http.ResponseWriter, _ *http.Request) { modeltest.Cut(w) },
		"in mid-stream":      func(w http.ResponseWriter, _ *http.Request) { send(w, begin); modeltest.Cut(w) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := setup(t, h)
			if turn := modeltest.Collect(t, p.Stream(t.Context(), ask("hi"))); turn.Err == nil || turn.Err.Class != model.Timeout {
				t.Errorf("err = %v", turn.Err)
			}
		})
	}
}

func TestPingsAndPiecesAreProgress(t *testing.T) {
	t.Parallel()
	p, _ := setup(t, events(all(begin, ping, ping, toolUse(0, "a", "ls", `{`, `}`), stop("tool_use"), end)...))
	n := 0
	turn := modeltest.Collect(t, p.Stream(model.WithProgress(t.Context(), func() { n++ }), ask("hi")))
	if turn.Err != nil || n < 10 {
		t.Errorf("progress was reported %d times; err = %v", n, turn.Err)
	}
}

func TestErrorsShowNeitherKeyNorPrompt(t *testing.T) {
	t.Parallel()
	echo := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"type":"error","error":{"type":"%s my prompt","message":"my prompt"}}`, r.Header.Get("Authorization")+r.Header.Get("X-Api-Key"))
		}
	}
	for name, h := range map[string]http.HandlerFunc{
		"400": echo(400), "401": echo(401), "500": echo(500),
		"in stream": events(`{"type":"error","error":{"type":"` + key + `","message":"my prompt"}}`),
		"malformed": events(`{"type":"my prompt ` + key),
		"cut":       func(w http.ResponseWriter, _ *http.Request) { modeltest.Cut(w) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, srv := setup(t, h)
			turn := modeltest.Collect(t, p.Stream(t.Context(), ask("my prompt")))
			if turn.Err == nil {
				t.Fatal("no error")
			}
			modeltest.NoSecrets(t, turn.Err, key, "my prompt")
			if calls := srv.Calls(); len(calls) != 1 || !strings.Contains(calls[0].Header.Get("Authorization")+calls[0].Header.Get("X-Api-Key"), key) {
				t.Error("the server did not get the key")
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil {
		t.Error("no key")
	}
	for _, bad := range []string{"ftp://user:hunter2@host", "://hunter2", "http://"} {
		if _, err := New(Config{APIKey: key, BaseURL: bad}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: err = %v", bad, err)
		}
	}
}

func BenchmarkStream5000Deltas(b *testing.B) {
	var sb strings.Builder
	lines := []string{begin, start(0, `{"type":"text","text":""}`)}
	for range 5000 {
		lines = append(lines, piece(0, "text_delta", "text", " word of twenty char"))
	}
	for _, l := range append(lines, closed(0), stop("end_turn"), end) {
		sb.WriteString("event: x\ndata: " + l + "\n\n")
	}
	p, _ := setup(b, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(sb.String())) })
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range p.Stream(b.Context(), ask("hi")) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
