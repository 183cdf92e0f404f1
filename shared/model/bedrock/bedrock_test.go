package bedrock

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"go.uber.org/goleak"

	"laneway/shared/model"
	"laneway/shared/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "AWS-secret-456"

// setup makes a provider that talks to a server with the given answer.
func setup(tb testing.TB, h http.HandlerFunc) (*Provider, *modeltest.Server) {
	tb.Helper()
	srv := modeltest.Serve(tb, h)
	client := &http.Client{Transport: &http.Transport{}}
	tb.Cleanup(client.CloseIdleConnections)
	p, err := New(Config{
		AWS: aws.Config{
			Region: "eu-west-1", BaseEndpoint: aws.String(srv.URL),
			Credentials: credentials.NewStaticCredentialsProvider("AKIDKEY", secret, ""),
		},
		HTTPClient: client,
		Now:        func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	})
	if err != nil {
		tb.Fatal(err)
	}
	return p, srv
}

func ask(text string) model.Request {
	return model.Request{Model: "eu.anthropic.claude-x-v1:0", Messages: []model.Message{{
		Role: model.User, Content: []model.Block{{Type: model.Text, Text: text}},
	}}}
}

// ev is an event on the wire: its type, or an exception's, and its payload.
type ev struct {
	kind, payload string
	exception     bool
}

func (e ev) encode() []byte {
	name := func(k, v string) eventstream.Header {
		return eventstream.Header{Name: k, Value: eventstream.StringValue(v)}
	}
	m := eventstream.Message{Payload: []byte(e.payload)}
	if e.exception {
		m.Headers = eventstream.Headers{name(":message-type", "exception"), name(":exception-type", e.kind), name(":content-type", "application/json")}
	} else {
		m.Headers = eventstream.Headers{name(":message-type", "event"), name(":event-type", e.kind), name(":content-type", "application/json")}
	}
	var buf bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&buf, m); err != nil {
		panic(err) // a mistake in this file
	}
	return buf.Bytes()
}

func send(w http.ResponseWriter, events ...ev) {
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	for _, e := range events {
		_, _ = w.Write(e.encode()) // a client that has gone shows in its own result
		modeltest.Flush(w)
	}
	modeltest.Flush(w)
}

func events(list ...ev) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { send(w, list...) }
}

var (
	begin = ev{kind: "messageStart", payload: `{"role":"assistant"}`}
	meta  = ev{kind: "metadata", payload: `{"usage":{"inputTokens":10,"outputTokens":20,"totalTokens":135,"cacheReadInputTokens":100,"cacheWriteInputTokens":5},"metrics":{"latencyMs":5}}`}
)

func delta(i int, d string) ev {
	return ev{kind: "contentBlockDelta", payload: `{"contentBlockIndex":` + strconv.Itoa(i) + `,"delta":` + d + `}`}
}
func text(s string) ev { return delta(0, `{"text":`+strconv.Quote(s)+`}`) }
func startTool(i int, id, name string) ev {
	return ev{kind: "contentBlockStart", payload: fmt.Sprintf(`{"contentBlockIndex":%d,"start":{"toolUse":{"toolUseId":%q,"name":%q}}}`, i, id, name)}
}
func args(i int, s string) ev { return delta(i, `{"toolUse":{"input":`+strconv.Quote(s)+`}}`) }

func closed(i int) ev {
	return ev{kind: "contentBlockStop", payload: `{"contentBlockIndex":` + strconv.Itoa(i) + `}`}
}

func stop(reason string) ev {
	return ev{kind: "messageStop", payload: `{"stopReason":"` + reason + `"}`}
}

func exception(kind, msg string) ev {
	return ev{kind: kind, payload: `{"message":` + strconv.Quote(msg) + `}`, exception: true}
}

func call(id, name, args string) model.Block {
	return model.Block{Type: model.ToolCall, ID: id, Name: name, Arguments: []byte(args)}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		send   []ev
		text   string
		think  string
		signed []model.Block
		calls  []model.Block
		stop   string
		fail   model.Class
	}{
		{name: "text", send: []ev{begin, text("Hel"), text("lo"), closed(0), stop("end_turn"), meta}, text: "Hello", stop: "stop"},
		{name: "no metadata", send: []ev{begin, text("a"), stop("end_turn")}, text: "a", stop: "stop"},
		{
			name: "signed thinking", send: []ev{
				begin, delta(0, `{"reasoningContent":{"text":"hm, "}}`), delta(0, `{"reasoningContent":{"text":"yes"}}`), delta(0, `{"reasoningContent":{"signature":"Eo=="}}`), closed(0),
				delta(1, `{"text":"a"}`), closed(1), stop("end_turn"), meta,
			},
			think: "hm, yes", text: "a", stop: "stop", signed: []model.Block{{Type: model.Thinking, Thinking: "hm, yes", Signature: "Eo=="}},
		},
		{
			name: "encrypted thinking", send: []ev{begin, delta(0, `{"reasoningContent":{"redactedContent":"AP8="}}`), closed(0), delta(1, `{"text":"a"}`), stop("end_turn"), meta},
			text: "a", stop: "stop", signed: []model.Block{{Type: model.Thinking, Signature: "redacted:AP8="}},
		},
		{name: "thinking without a signature", send: []ev{begin, delta(0, `{"reasoningContent":{"text":"hm"}}`), closed(0), delta(1, `{"text":"a"}`), stop("end_turn"), meta}, think: "hm", text: "a", stop: "stop"},
		{
			name: "parallel tools", send: []ev{begin, text("I look"), closed(0), startTool(1, "t_1", "ls"), args(1, `{"pa`), args(1, `th":"."}`), closed(1), startTool(2, "t_2", "now"), closed(2), stop("tool_use"), meta},
			text: "I look", calls: []model.Block{call("t_1", "ls", `{"path":"."}`), call("t_2", "now", `{}`)}, stop: "toolUse",
		},
		{
			name: "interleaved tools", send: []ev{begin, startTool(0, "a", "ls"), startTool(1, "b", "read"), args(1, `{"p":`), args(0, `{}`), args(1, `1}`), closed(1), closed(0), stop("tool_use"), meta},
			calls: []model.Block{call("a", "ls", `{}`), call("b", "read", `{"p":1}`)}, stop: "toolUse",
		},
		{name: "stop sequence", send: []ev{begin, text("a"), stop("stop_sequence"), meta}, text: "a", stop: "stop"},
		{name: "max tokens", send: []ev{begin, text("a"), stop("max_tokens"), meta}, text: "a", stop: "length"},
		{name: "context window full", send: []ev{begin, text("a"), stop("model_context_window_exceeded"), meta}, text: "a", stop: "length"},
		{name: "a call cut by max tokens is not made", send: []ev{begin, startTool(0, "a", "ls"), args(0, `{}`), closed(0), startTool(1, "b", "write"), args(1, `{"te`), closed(1), stop("max_tokens"), meta}, calls: []model.Block{call("a", "ls", `{}`)}, stop: "length"},
		{name: "guardrail", send: []ev{begin, text("so"), stop("guardrail_intervened"), meta}, text: "so", stop: "refusal"},
		{name: "content filter, its calls not made", send: []ev{begin, startTool(0, "a", "ls"), args(0, `{}`), stop("content_filtered"), meta}, stop: "refusal"},
		{name: "malformed output", send: []ev{begin, text("a"), stop("malformed_model_output"), meta}, text: "a", fail: model.Timeout},
		{name: "malformed tool use", send: []ev{begin, stop("malformed_tool_use"), meta}, fail: model.Timeout},
		{name: "unknown events", send: []ev{begin, {kind: "newEvent", payload: `{"x":1}`}, text("a"), stop("end_turn"), meta}, text: "a", stop: "stop"},
		{name: "nothing said", send: []ev{begin, stop("end_turn"), meta}, fail: model.EmptyResponse},
		{name: "no bytes at all", fail: model.EmptyResponse},
		{name: "end in mid-stream is a cut", send: []ev{begin, text("a")}, text: "a", fail: model.Timeout},
		{name: "a call without id", send: []ev{begin, startTool(0, "", "ls"), closed(0), stop("tool_use"), meta}, fail: model.Timeout},
		{name: "throttled in the stream", send: []ev{begin, text("a"), exception("throttlingException", "Too many requests")}, text: "a", fail: model.RateLimit},
		{name: "server error in the stream", send: []ev{begin, exception("internalServerException", "x")}, fail: model.ServerError},
		{name: "model error in the stream", send: []ev{begin, exception("modelStreamErrorException", "x")}, fail: model.ServerError},
		{name: "unavailable in the stream", send: []ev{begin, exception("serviceUnavailableException", "x")}, fail: model.ServerError},
		{name: "overflow in the stream", send: []ev{begin, exception("validationException", "Input is too long for requested model.")}, fail: model.ContextOverflow},
		{name: "bad request in the stream", send: []ev{begin, exception("validationException", "x")}, fail: model.Format},
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

func TestUsageComesBeforeDone(t *testing.T) {
	t.Parallel()
	p, srv := setup(t, events(begin, text("a"), stop("end_turn"), meta))
	turn := modeltest.Collect(t, p.Stream(t.Context(), ask("hi")))
	if want := (model.Usage{Input: 10, Output: 20, CacheRead: 100, CacheWrite: 5, Total: 135}); turn.Usage != want {
		t.Errorf("usage = %+v, want %+v", turn.Usage, want)
	}
	if calls := srv.Calls(); len(calls) != 1 || !strings.HasSuffix(calls[0].Path, "/converse-stream") || !strings.Contains(calls[0].Header.Get("Authorization"), "AKIDKEY") {
		t.Errorf("calls = %+v", calls)
	}
}

func TestConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	addrs := map[string]bool{}
	p, _ := setup(t, func(w http.ResponseWriter, r *http.Request) {
		addrs[r.RemoteAddr] = true
		send(w, begin, text("a"), stop("end_turn"), meta)
	})
	const calls = 10
	for range calls {
		if turn := modeltest.Collect(t, p.Stream(t.Context(), ask("hi"))); turn.Err != nil {
			t.Fatal(turn.Err)
		}
	}
	// A machine that is busy may let the time for the end pass now and then.
	if len(addrs) > calls/2 {
		t.Errorf("%d calls, one after the other, used %d connections", calls, len(addrs))
	}
}

func TestServerThatStaysOpenAfterTheEndDoesNotHoldTheCaller(t *testing.T) {
	t.Parallel()
	p, srv := setup(t, func(w http.ResponseWriter, r *http.Request) {
		send(w, begin, text("a"), stop("end_turn"), meta)
		<-r.Context().Done()
	})
	if turn := modeltest.Collect(t, p.Stream(t.Context(), ask("hi"))); turn.Done == nil {
		t.Errorf("turn = %+v", turn)
	}
	srv.AwaitClosed(t)
}

func TestStatusFailures(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		status     int
		kind, msg  string
		retryAfter string
		class      model.Class
		after      time.Duration
		long       bool
	}{
		{429, "ThrottlingException", "Too many requests", "4", model.RateLimit, 4 * time.Second, false},
		{429, "ThrottlingException", "Too many tokens per day", "", model.RateLimit, 0, true},
		{429, "ModelNotReadyException", "x", "", model.Overloaded, 0, false},
		{400, "ServiceQuotaExceededException", "x", "", model.RateLimit, 0, false},
		{400, "ValidationException", "Input is too long for requested model.", "", model.ContextOverflow, 0, false},
		{400, "ValidationException", "messages: x", "", model.Format, 0, false},
		{403, "AccessDeniedException", "You don't have access to the model", "", model.Auth, 0, false},
		{403, "ExpiredTokenException", "x", "", model.Auth, 0, false},
		{404, "ResourceNotFoundException", "x", "", model.ModelNotFound, 0, false},
		{408, "ModelTimeoutException", "x", "", model.Timeout, 0, false},
		{424, "ModelErrorException", "x", "", model.ServerError, 0, false},
		{500, "InternalServerException", "x", "", model.ServerError, 0, false},
		{503, "ServiceUnavailableException", "x", "", model.ServerError, 0, false},
		{529, "", "", "", model.Overloaded, 0, false},
	} {
		t.Run(strconv.Itoa(row.status)+" "+row.kind, func(t *testing.T) {
			t.Parallel()
			p, srv := setup(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Amzn-Errortype", row.kind)
				w.Header().Set("Content-Type", "application/json")
				if row.retryAfter != "" {
					w.Header().Set("Retry-After", row.retryAfter)
				}
				w.WriteHeader(row.status)
				fmt.Fprintf(w, `{"message":%q}`, row.msg)
			})
			turn := modeltest.Collect(t, p.Stream(t.Context(), ask("hi")))
			if turn.Err == nil {
				t.Fatal("no error")
			}
			if e := turn.Err; e.Class != row.class || e.Status != row.status || e.RetryAfter != row.after || e.LongWindow != row.long || e.Provider != "bedrock" {
				t.Errorf("err = %+v", *e)
			}
			if row.kind != "" && !strings.Contains(turn.Err.Message, "("+row.kind+")") {
				t.Errorf("message = %q", turn.Err.Message)
			}
			if n := len(srv.Calls()); n != 1 {
				t.Errorf("%d calls: the adapter must not retry", n)
			}
		})
	}
}

func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	flipped := text("a").encode()
	flipped[len(flipped)-6] ^= 1 // a byte of the payload: the checksum is wrong
	for name, h := range map[string]http.HandlerFunc{
		"cut before the headers": func(w http.ResponseWriter, _ *http.Request) { modeltest.Cut(w) },
		"cut in mid-stream": func(w http.ResponseWriter, _ *http.Request) {
			send(w, begin, text("a"))
			modeltest.Cut(w)
		},
		"half an event": func(w http.ResponseWriter, _ *http.Request) {
			send(w, begin)
			b := text("a").encode()
			_, _ = w.Write(b[:len(b)/2])
		},
		"wrong checksum": func(w http.ResponseWriter, _ *http.Request) {
			send(w, begin)
			_, _ = w.Write(flipped)
		},
		"payload that is no JSON": events(begin, ev{kind: "contentBlockDelta", payload: `{"delta`}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := setup(t, h)
			if turn := modeltest.Collect(t, p.Stream(t.Context(), ask("hi"))); turn.Err == nil || turn.Err.Class != model.Timeout {
				t.Errorf("err = %v", turn.Err)
			}
		})
	}
	if crc32.ChecksumIEEE(flipped) == crc32.ChecksumIEEE(text("a").encode()) {
		t.Error("the flipped event is not broken")
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
						send(w, begin)
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
		send(w, begin, text("one"), text("two"))
		<-r.Context().Done()
	})
	for part, err := range p.Stream(t.Context(), ask("hi")) {
		if err != nil || part.Text != "one" {
			t.Errorf("part = %+v, err = %v", part, err)
		}
		break
	}
	srv.AwaitClosed(t)
}

func TestErrorsShowNeitherKeyNorPrompt(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"400": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amzn-Errortype", "my prompt "+secret)
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"message":"my prompt AKIDKEY"}`))
		},
		"in stream": events(begin, exception("validationException", "my prompt AKIDKEY "+secret)),
		"cut":       func(w http.ResponseWriter, _ *http.Request) { modeltest.Cut(w) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := setup(t, h)
			turn := modeltest.Collect(t, p.Stream(t.Context(), ask("my prompt")))
			if turn.Err == nil {
				t.Fatal("no error")
			}
			modeltest.NoSecrets(t, turn.Err, secret, "AKIDKEY", "my prompt")
		})
	}
}

func TestNoCredentialsIsAuth(t *testing.T) {
	t.Parallel()
	p, err := New(Config{AWS: aws.Config{Region: "eu-west-1", BaseEndpoint: aws.String("http://127.0.0.1:1"), Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, fmt.Errorf("none found for %s", secret)
	})}})
	if err != nil {
		t.Fatal(err)
	}
	turn := modeltest.Collect(t, p.Stream(t.Context(), ask("hi")))
	if turn.Err == nil || turn.Err.Class != model.Auth {
		t.Errorf("err = %v", turn.Err)
	}
	modeltest.NoSecrets(t, turn.Err, secret)
}

func TestNewNeedsARegion(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil {
		t.Error("no region")
	}
}
