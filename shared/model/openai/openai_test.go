package openai

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"laneway/shared/model"
	"laneway/shared/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setup makes a provider that talks to a server with the given answer.
func setup(t *testing.T, h http.HandlerFunc) (*Provider, *modeltest.Server) {
	t.Helper()
	srv := modeltest.Serve(t, h)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	n := 0
	p, err := New(Config{
		BaseURL: srv.URL + "/v1", APIKey: "sk-key-123", HTTPClient: client,
		NewID: func() string { n++; return "made_" + strconv.Itoa(n) },
		Now:   func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, srv
}

func ask(text string) model.Request {
	return model.Request{Model: "m-1", Messages: []model.Message{{
		Role: model.User, Content: []model.Block{{Type: model.Text, Text: text}},
	}}}
}

// events answers with the given chunks.
func events(data ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { modeltest.Events(w, data...) }
}

const done = "[DONE]"

func text(s string) string {
	return `{"choices":[{"index":0,"delta":{"content":` + strconv.Quote(s) + `},"finish_reason":null}]}`
}

func finish(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

func toolDelta(delta string) string {
	return `{"choices":[{"index":0,"delta":{"tool_calls":[` + delta + `]}}]}`
}

func callBlock(id, name, args string) model.Block {
	return model.Block{Type: model.ToolCall, ID: id, Name: name, Arguments: []byte(args)}
}

func TestStreamOfAPlainAnswer(t *testing.T) {
	t.Parallel()
	p, srv := setup(t, events(
		`{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
		text("Hel"), text("lo, "), text("Wörld\n"), finish("stop"),
		`{"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":4,"total_tokens":34,"prompt_tokens_details":{"cached_tokens":20}}}`,
		done))
	turn := modeltest.Collect(t, p.Stream(t.Context(), ask("hi")))
	if got := strings.Join(turn.Texts, "|"); got != "Hel|lo, |Wörld\n" {
		t.Errorf("text parts = %q", got)
	}
	if turn.Done == nil || *turn.Done != (model.Done{StopReason: "stop", Raw: "stop"}) {
		t.Errorf("done = %+v, err = %v", turn.Done, turn.Err)
	}
	if want := (model.Usage{Input: 10, Output: 4, CacheRead: 20, Total: 34}); turn.Usage != want {
		t.Errorf("usage = %+v, want %+v", turn.Usage, want)
	}
	calls := srv.Calls()
	if len(calls) != 1 || calls[0].Path != "/v1/chat/completions" || calls[0].Header.Get("Authorization") != "Bearer sk-key-123" {
		t.Errorf("calls = %+v", calls)
	}
}

func TestConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	const calls = 10
	addrs := map[string]bool{}
	told := make(chan struct{})
	p, _ := setup(t, func(w http.ResponseWriter, r *http.Request) {
		addrs[r.RemoteAddr] = true
		modeltest.Events(w, text("x"), finish("stop"), done)
		<-told // so that the end of the body comes after the caller has Done
	})
	for range calls {
		for part, err := range p.Stream(t.Context(), ask("hi")) {
			if err != nil {
				t.Fatal(err)
			}
			if part.Done != nil {
				told <- struct{}{}
			}
		}
	}
	// A machine that is busy may let the time for the end pass now and then.
	if len(addrs) > calls/2 {
		t.Errorf("%d calls, one after the other, used %d connections", calls, len(addrs))
	}
}

func TestServerThatStaysOpenAfterDoneDoesNotHoldTheCaller(t *testing.T) {
	t.Parallel()
	p, srv := setup(t, func(w http.ResponseWriter, r *http.Request) {
		modeltest.Events(w, text("x"), finish("stop"), done)
		<-r.Context().Done()
	})
	if turn := modeltest.Collect(t, p.Stream(t.Context(), ask("hi"))); turn.Err != nil || turn.Done == nil {
		t.Errorf("turn = %+v", turn)
	}
	srv.AwaitClosed(t)
}

func TestLeavingTheRangeClosesTheConnection(t *testing.T) {
	t.Parallel()
	p, srv := setup(t, func(w http.ResponseWriter, r *http.Request) {
		modeltest.Events(w, text("one"))
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

func TestCancelDuringAStallClosesTheConnection(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		cause error
		want  model.Class
	}{
		{"by the caller", nil, model.Aborted},
		{"by the watchdog", model.ErrIdle, model.Timeout},
		{"by a deadline", context.DeadlineExceeded, model.Timeout},
	} {
		for _, headers := range []bool{true, false} {
			t.Run(row.name+", headers "+strconv.FormatBool(headers), func(t *testing.T) {
				t.Parallel()
				reached := make(chan struct{})
				p, srv := setup(t, func(w http.ResponseWriter, r *http.Request) {
					if headers {
						modeltest.Events(w, text("Hel"))
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
				if row.cause != nil && !errors.Is(turn.Err, row.cause) {
					t.Errorf("err = %v has lost its cause %v", turn.Err, row.cause)
				}
				srv.AwaitClosed(t)
			})
		}
	}
}

func TestProgressIsReportedForEverythingThatArrives(t *testing.T) {
	t.Parallel()
	p, _ := setup(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(": keep-alive\n\n: keep-alive\n\n"))
		modeltest.Events(w, toolDelta(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{"}}`),
			toolDelta(`{"index":0,"function":{"arguments":"}"}}`), finish("tool_calls"), done)
	})
	n := 0
	turn := modeltest.Collect(t, p.Stream(model.WithProgress(t.Context(), func() { n++ }), ask("hi")))
	if turn.Err != nil || n < 7 { // headers, two comments, four events
		t.Errorf("progress was reported %d times; err = %v", n, turn.Err)
	}
}

func TestListModels(t *testing.T) {
	t.Parallel()
	p, srv := setup(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"object":"list","data":[{"id":"qwen3","object":"model"},{"id":null},{"id":"b"}]}`))
	})
	infos, err := p.ListModels(t.Context())
	if err != nil || len(infos) != 2 || infos[0] != (model.Info{ID: "qwen3", Name: "qwen3", Provider: "openai"}) {
		t.Errorf("infos = %+v, err = %v", infos, err)
	}
	if calls := srv.Calls(); len(calls) != 1 || calls[0].Path != "/v1/models" {
		t.Errorf("calls = %+v", calls)
	}
}

func TestListModelsFailures(t *testing.T) {
	t.Parallel()
	p, _ := setup(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusUnauthorized)
	})
	if _, err := p.ListModels(t.Context()); model.ClassOf(err) != model.Auth {
		t.Errorf("err = %v", err)
	}
	p, _ = setup(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"data":[]}`))
	})
	if _, err := p.ListModels(t.Context()); err == nil {
		t.Error("an empty list is no error")
	}
}

func TestNewRefusesABadAddressWithoutShowingIt(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"ftp://user:hunter2@host/v1", "://hunter2", "host-hunter2:8080", "http://"} {
		_, err := New(Config{BaseURL: bad})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: err = %v", bad, err)
		}
	}
}
