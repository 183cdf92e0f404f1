package openai

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/modeltest"
)

// What real servers were seen to do with a stream that is not in the book.
func TestStreamOddities(t *testing.T) {
	t.Parallel()
	args := `{"path":"."}`
	for _, row := range []struct {
		name  string
		send  []string
		text  string
		think string
		calls []model.Block
		stop  string
		fail  model.Class
	}{
		{name: "no finish reason before DONE", send: []string{text("hi"), done}, text: "hi", stop: "stop"},
		{name: "no finish reason before DONE, with a call", send: []string{toolDelta(`{"index":0,"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}`), done}, calls: []model.Block{callBlock("a", "ls", "{}")}, stop: "toolUse"},
		{name: "finish reason but no DONE", send: []string{text("hi"), finish("stop")}, text: "hi", stop: "stop"},
		{name: "end without finish reason and DONE is a cut", send: []string{text("hi")}, text: "hi", fail: model.Timeout},
		{name: "no bytes at all", send: nil, fail: model.EmptyResponse},
		{name: "only DONE", send: []string{done}, fail: model.EmptyResponse},
		{name: "stop without a word", send: []string{finish("stop"), done}, fail: model.EmptyResponse},
		{name: "thinking but no word", send: []string{`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, finish("stop"), done}, think: "hm", fail: model.EmptyResponse},
		{name: "all tokens spent on thinking", send: []string{`{"choices":[{"delta":{"reasoning":"hm"}}]}`, finish("length"), done}, think: "hm", stop: "length"},
		{name: "nulls everywhere", send: []string{
			`{"id":null,"object":null,"usage":null,"error":null,"choices":null}`,
			`{"choices":[{"index":null,"delta":null,"finish_reason":null}]}`,
			`{"choices":[{"delta":{"role":null,"content":null,"refusal":null,"reasoning_content":null,"tool_calls":null}}]}`,
			`null`, text("hi"), `{"choices":[{"delta":{"content":null},"finish_reason":"stop"}]}`, done,
		}, text: "hi", stop: "stop"},
		{name: "fields of the wrong type count as absent", send: []string{`{"id":7,"choices":[{"index":"0","delta":{"content":"hi","reasoning":{"x":1}}}],"usage":[]}`, done}, text: "hi", stop: "stop"},
		{name: "other choices are not ours", send: []string{`{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes"}}]}`, done}, text: "yes", stop: "stop"},
		{name: "reasoning under both names is given once", send: []string{`{"choices":[{"delta":{"reasoning_content":"hm","reasoning":"hm"}}]}`, text("a"), done}, think: "hm", text: "a", stop: "stop"},
		{name: "refusal text", send: []string{`{"choices":[{"delta":{"refusal":"I won't"}}]}`, finish("stop"), done}, text: "I won't", stop: "stop"},
		{name: "content filter", send: []string{text("so"), finish("content_filter"), done}, text: "so", stop: "refusal"},
		{name: "a filtered call is not made", send: []string{toolDelta(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}}`), finish("content_filter"), done}, stop: "refusal"},
		{name: "length", send: []string{text("so"), finish("length"), done}, text: "so", stop: "length"},
		{name: "unknown finish reason", send: []string{text("so"), finish("eos"), done}, text: "so", stop: "stop"},
		{name: "finish reason error", send: []string{text("so"), finish("error"), done}, text: "so", fail: model.ServerError},
		{name: "finish reason abort", send: []string{text("so"), finish("abort"), done}, text: "so", fail: model.Timeout},
		{name: "finish reason network_error", send: []string{text("so"), finish("network_error"), done}, text: "so", fail: model.Timeout},
		{name: "finish reason malformed_response", send: []string{text("so"), finish("malformed_response"), done}, text: "so", fail: model.Timeout},
		{name: "malformed chunk", send: []string{text("so"), `{"choices":[{"delta":{"con`, done}, text: "so", fail: model.Timeout},
		{name: "error in the stream", send: []string{text("so"), `{"error":{"message":"boom","type":"server_error","code":null}}`}, text: "so", fail: model.ServerError},
		{name: "error in the stream with a status as its code", send: []string{`{"id":"x","error":{"code":429,"message":"slow down"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`}, fail: model.RateLimit},
		{name: "error in the stream without envelope", send: []string{`{"object":"error","message":"maximum context length is 10","type":"BadRequestError","code":400}`}, fail: model.ContextOverflow},
		{name: "error in the stream that is a string", send: []string{`{"error":"model is loading"}`}, fail: model.Overloaded},
		{name: "stop although a tool is called", send: []string{toolDelta(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}}`), finish("stop"), done}, calls: []model.Block{callBlock("a", "ls", "{}")}, stop: "toolUse"},
		{name: "tool_calls although none came", send: []string{text("hi"), finish("tool_calls"), done}, text: "hi", stop: "stop"},
		{name: "arguments in pieces, calls interleaved", send: []string{
			toolDelta(`{"index":0,"id":"a","function":{"name":"ls","arguments":""}},{"index":1,"id":"b","function":{"name":"read","arguments":""}}`),
			toolDelta(`{"index":1,"function":{"arguments":"{\"path\""}}`), toolDelta(`{"index":0,"function":{"arguments":"{\"pa"}}`),
			toolDelta(`{"index":1,"function":{"arguments":":\"x\"}"}}`), toolDelta(`{"index":0,"function":{"arguments":"th\":\".\"}"}}`),
			finish("tool_calls"), done,
		}, calls: []model.Block{callBlock("a", "ls", args), callBlock("b", "read", `{"path":"x"}`)}, stop: "toolUse"},
		{name: "id and name repeated in each piece", send: []string{
			toolDelta(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{\"path\":"}}`), toolDelta(`{"index":0,"id":"a","function":{"name":"ls","arguments":"\".\"}"}}`), done,
		}, calls: []model.Block{callBlock("a", "ls", args)}, stop: "toolUse"},
		{name: "index 0 for every call", send: []string{
			toolDelta(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}}`), toolDelta(`{"index":0,"id":"b","function":{"name":"ls","arguments":"{\"path\":"}}`), toolDelta(`{"index":0,"function":{"arguments":"\".\"}"}}`), done,
		}, calls: []model.Block{callBlock("a", "ls", "{}"), callBlock("b", "ls", args)}, stop: "toolUse"},
		{name: "index 0 for every call and no ids", send: []string{
			toolDelta(`{"index":0,"function":{"name":"ls","arguments":"{}"}}`), toolDelta(`{"index":0,"function":{"name":"ls","arguments":"{\"path\":\".\"}"}}`), done,
		}, calls: []model.Block{callBlock("made_1", "ls", "{}"), callBlock("made_2", "ls", args)}, stop: "toolUse"},
		{name: "no index", send: []string{
			toolDelta(`{"id":"a","function":{"name":"ls","arguments":"{\"path\":"}}`), toolDelta(`{"function":{"arguments":"\".\"}"}}`), toolDelta(`{"id":"b","function":{"name":"read"}}`), toolDelta(`{"id":"a","function":{"arguments":" "}}`), done,
		}, calls: []model.Block{callBlock("a", "ls", args), callBlock("b", "read", "{}")}, stop: "toolUse"},
		{name: "neither index nor id", send: []string{
			toolDelta(`{"function":{"name":"ls","arguments":"{\"path\":"}}`), toolDelta(`{"function":{"arguments":"\".\"}"}}`), toolDelta(`{"function":{"name":"read","arguments":"{}"}}`), done,
		}, calls: []model.Block{callBlock("made_1", "ls", args), callBlock("made_2", "read", "{}")}, stop: "toolUse"},
		{name: "the same id twice", send: []string{
			toolDelta(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"read","arguments":"{}"}}`), done,
		}, calls: []model.Block{callBlock("a", "ls", "{}"), callBlock("made_1", "read", "{}")}, stop: "toolUse"},
		{name: "arguments as an object", send: []string{toolDelta(`{"index":0,"id":"a","function":{"name":"ls","arguments":{"path":"."}}}`), done}, calls: []model.Block{callBlock("a", "ls", args)}, stop: "toolUse"},
		{name: "arguments null", send: []string{toolDelta(`{"index":0,"id":"a","function":{"name":"ls","arguments":null}}`), done}, calls: []model.Block{callBlock("a", "ls", "{}")}, stop: "toolUse"},
		{name: "arguments that are no JSON stay a text", send: []string{toolDelta(`{"index":0,"id":"a","function":{"name":"ls","arguments":"path: \"x\""}}`), done}, calls: []model.Block{callBlock("a", "ls", `"path: \"x\""`)}, stop: "toolUse"},
		{name: "a call cut by the token limit is not made", send: []string{
			toolDelta(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"write","arguments":"{\"path\":\"x\",\"te"}}`), finish("length"), done,
		}, calls: []model.Block{callBlock("a", "ls", "{}")}, stop: "length"},
		{name: "a call without a name", send: []string{toolDelta(`{"index":0,"id":"a","function":{"arguments":"{}"}}`), done}, fail: model.Timeout},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p, _ := setup(t, events(row.send...))
			turn := modeltest.Collect(t, p.Stream(t.Context(), ask("hi")))
			if turn.Text() != row.text || turn.Thinking != row.think {
				t.Errorf("text = %q, thinking = %q", turn.Text(), turn.Thinking)
			}
			if !reflect.DeepEqual(turn.Calls, row.calls) {
				t.Errorf("calls = %s, want %s", show(turn.Calls), show(row.calls))
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

func show(blocks []model.Block) string {
	var sb strings.Builder
	for _, b := range blocks {
		fmt.Fprintf(&sb, "[%s %s %s]", b.ID, b.Name, b.Arguments)
	}
	return sb.String()
}

func TestTransportOddities(t *testing.T) {
	t.Parallel()
	raw := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(body))
		}
	}
	cut := func(w http.ResponseWriter, _ *http.Request) {
		modeltest.Events(w, text("hi"))
		modeltest.Cut(w)
	}
	for _, row := range []struct {
		name string
		h    http.HandlerFunc
		text string
		fail model.Class
	}{
		{"CRLF line ends", raw("data: " + text("hi") + "\r\n\r\ndata: [DONE]\r\n\r\n"), "hi", ""},
		{"no space after the colon", raw("data:" + text("hi") + "\n\ndata:[DONE]\n\n"), "hi", ""},
		{"no empty line at the end", raw("data: " + text("hi") + "\n\ndata: [DONE]"), "hi", ""},
		{"event names, ids and comments", raw(": OPENROUTER PROCESSING\n\nevent: message\nid: 1\ndata: " + text("hi") + "\n\ndata: [DONE]\n\n"), "hi", ""},
		{"a chunk over several data lines", raw("data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n"), "hi", ""},
		{"a chunk larger than the read buffer", raw("data: " + text(strings.Repeat("x", 100<<10)) + "\n\ndata: [DONE]\n\n"), strings.Repeat("x", 100<<10), ""},
		{"connection cut in mid-stream", cut, "hi", model.Timeout},
		{"connection cut before the headers", func(w http.ResponseWriter, _ *http.Request) { modeltest.Cut(w) }, "", model.Timeout},
		{"connection cut after the finish reason", func(w http.ResponseWriter, _ *http.Request) {
			modeltest.Events(w, text("hi"), finish("stop"))
			modeltest.Cut(w)
		}, "hi", ""},
		{"empty 200", raw(""), "", model.EmptyResponse},
		{"empty 200 that says it is JSON", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/json") }, "", model.EmptyResponse},
		{"whole answer instead of a stream", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = w.Write([]byte(`{"choices":[{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":null},"finish_reason":"stop"}],"usage":null}`))
		}, "hi", ""},
		{"error with status 200", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"error":{"message":"x","type":"rate_limit_error"}}`))
		}, "", model.RateLimit},
		{"a page that is no stream", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html><body>Log in</body></html>"))
		}, "", model.EmptyResponse},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p, _ := setup(t, row.h)
			turn := modeltest.Collect(t, p.Stream(t.Context(), ask("hi")))
			if turn.Text() != row.text {
				t.Errorf("text = %q", turn.Text())
			}
			if row.fail == "" && turn.Err != nil || row.fail != "" && (turn.Err == nil || turn.Err.Class != row.fail) {
				t.Errorf("err = %v, want class %q", turn.Err, row.fail)
			}
		})
	}
}

func TestStatusFailures(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		status int
		header map[string]string
		body   string
		class  model.Class
		after  time.Duration
		code   string
	}{
		{"429 with Retry-After", 429, map[string]string{"Retry-After": "7"}, `{"error":{"message":"slow","type":"tokens","code":"rate_limit_exceeded"}}`, model.RateLimit, 7 * time.Second, "rate_limit_exceeded"},
		{"429 with milliseconds", 429, map[string]string{"Retry-After-Ms": "1500", "Retry-After": "2"}, ``, model.RateLimit, 1500 * time.Millisecond, ""},
		{"503 with a date", 503, map[string]string{"Retry-After": "Fri, 02 Jan 2026 03:05:05 GMT"}, `upstream`, model.ServerError, time.Minute, ""},
		{"529", 529, nil, `{}`, model.Overloaded, 0, ""},
		{"400 overflow", 400, nil, `{"error":{"message":"This model's maximum context length is 4096 tokens","code":"context_length_exceeded"}}`, model.ContextOverflow, 0, "context_length_exceeded"},
		{"400 format", 400, nil, `{"error":{"message":"bad tools","code":400,"type":"invalid_request_error"}}`, model.Format, 0, "invalid_request_error"},
		{"401", 401, nil, `{"error":{"message":"Incorrect API key provided: sk-key-123","code":"invalid_api_key"}}`, model.Auth, 0, "invalid_api_key"},
		{"404", 404, nil, `{"error":"model 'm-1' not found"}`, model.ModelNotFound, 0, ""},
		{"500 without a body", 500, nil, ``, model.ServerError, 0, ""},
		{"502 with a page", 502, nil, `<html>Bad Gateway</html>`, model.ServerError, 0, ""},
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
			if e := turn.Err; e.Class != row.class || e.Status != row.status || e.RetryAfter != row.after || e.Provider != "openai" || e.Model != "m-1" {
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

func TestErrorsShowNeitherKeyNorPrompt(t *testing.T) {
	t.Parallel()
	echo := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":"%s said my prompt","type":"my prompt","code":"sk-key-123"}}`, r.Header.Get("Authorization"))
		}
	}
	for name, h := range map[string]http.HandlerFunc{
		"400": echo(400), "401": echo(401), "429": echo(429), "500": echo(500),
		"in stream": events(`{"error":{"message":"my prompt","code":"sk-key-123"}}`),
		"malformed": events(`{"my prompt sk-key-123`),
		"cut":       func(w http.ResponseWriter, _ *http.Request) { modeltest.Cut(w) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := setup(t, h)
			turn := modeltest.Collect(t, p.Stream(t.Context(), ask("my prompt")))
			if turn.Err == nil {
				t.Fatal("no error")
			}
			modeltest.NoSecrets(t, turn.Err, "sk-key-123", "my prompt")
		})
	}
}
