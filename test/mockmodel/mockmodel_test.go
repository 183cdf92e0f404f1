package mockmodel

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

func post(ctx context.Context, t *testing.T, url, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

const hi = `{"model":"m","stream":true,"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"say hi"}]}],"tools":[{"function":{"name":"read"}}]}`

func TestScriptedStream(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.Script(
		Reply{Match: "other", Text: []string{"wrong"}},
		Reply{Match: "hi", Text: []string{"Hel", "lo"}, Calls: []Call{{"c1", "read", `{"path":"x"}`}}},
	)
	res := post(t.Context(), t, s.URL+"/chat/completions", hi)
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"content":"Hel"`, `"content":"lo"`, `"name":"read"`, `"finish_reason":"tool_calls"`, `"total_tokens":13`, "data: [DONE]"} {
		if !bytes.Contains(b, []byte(want)) {
			t.Errorf("no %s in\n%s", want, b)
		}
	}
	r := s.Requests()[0]
	if r.LastUser() != "say hi" || r.Messages[0].Role != "system" || r.Tools[0] != "read" {
		t.Errorf("recorded %+v", r)
	}
	// The scripted reply is used up: the next one is the default.
	b, err = io.ReadAll(post(t.Context(), t, s.URL+"/chat/completions", hi).Body)
	if err != nil || !bytes.Contains(b, []byte(`"content":"say hi"`)) {
		t.Errorf("%s, %v", b, err)
	}
}

func TestGateHoldsUntilOpened(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.Script(Reply{Text: []string{"one", "two"}, Gate: "g", GateAt: 1})
	res := post(t.Context(), t, s.URL+"/chat/completions", hi)
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "one") {
	}
	s.AwaitWaiting(t, "g")
	post(t.Context(), t, strings.TrimSuffix(s.URL, "/v1")+"/control/open?gate=g", "")
	seen := false
	for lines.Scan() {
		seen = seen || strings.Contains(lines.Text(), "two")
	}
	if !seen {
		t.Error("nothing came after the gate")
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.Script(Reply{Status: 429, RetryAfter: "7"}, Reply{Text: []string{"part"}, Cut: true}, Reply{Text: []string{"part"}, Stall: true})
	res := post(t.Context(), t, s.URL+"/chat/completions", hi)
	if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != "7" {
		t.Errorf("status %d, %v", res.StatusCode, res.Header)
	}
	b, err := io.ReadAll(post(t.Context(), t, s.URL+"/chat/completions", hi).Body)
	if err == nil || !bytes.Contains(b, []byte("part")) {
		t.Errorf("cut: %s, %v", b, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	res = post(ctx, t, s.URL+"/chat/completions", hi)
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "part") {
	}
	cancel()
	for lines.Scan() {
	}
	if lines.Err() == nil {
		t.Error("the stalled stream ended well")
	}
}

func TestControlScript(t *testing.T) {
	t.Parallel()
	s := New(t)
	base := strings.TrimSuffix(s.URL, "/v1")
	if res := post(t.Context(), t, base+"/control/script", `[{"text":["scripted"],"times":-1}]`); res.StatusCode != http.StatusNoContent {
		t.Fatalf("status %d", res.StatusCode)
	}
	if res := post(t.Context(), t, base+"/control/script", `[{"txt":["misspelt"]}]`); res.StatusCode != http.StatusBadRequest {
		t.Errorf("misspelt script: status %d", res.StatusCode)
	}
	for range 2 {
		var out struct {
			Choices []struct{ Message struct{ Content string } }
		}
		res := post(t.Context(), t, s.URL+"/chat/completions", strings.Replace(hi, "true", "false", 1))
		if err := json.NewDecoder(res.Body).Decode(&out); err != nil || out.Choices[0].Message.Content != "scripted" {
			t.Errorf("%+v, %v", out, err)
		}
	}
}
