package provider

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

// ask makes a streamed request and puts its text and the names of its calls together.
func ask(t *testing.T, s *Server, body string) (text, calls string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var said, called strings.Builder
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var c struct {
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
					Calls   []struct {
						Function struct {
							Name string `json:"name"`
						} `json:"function"`
					} `json:"tool_calls"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		for _, ch := range c.Choices {
			said.WriteString(ch.Delta.Content)
			for _, call := range ch.Delta.Calls {
				called.WriteString(call.Function.Name)
			}
		}
	}
	return said.String(), called.String()
}

func request(messages ...string) string {
	return `{"stream":true,"messages":[` + strings.Join(messages, ",") + `]}`
}

func user(tag string) string { return `{"role":"user","content":"` + Message(tag) + `"}` }

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestTheLastTagDecides(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Expect("old", Plan{})
	s.Expect("new-1", Plan{Deltas: 3, Bytes: 8})
	text, _ := ask(t, s, request(user("old"), user("new-1")))
	if text != Text(3, 8) || len(text) != 24 {
		t.Errorf("text %q", text)
	}
	if len(s.Requests("old")) != 0 || len(s.Requests("new-1")) != 1 {
		t.Errorf("noted %v and %v", s.Requests("old"), s.Requests("new-1"))
	}
	r := s.Requests("new-1")[0]
	if r.First.Before(r.Arrived) || r.Last.Before(r.First) || r.Done.Before(r.Last) || r.Bytes == 0 {
		t.Errorf("times out of order: %+v", r)
	}
}

func TestToolRoundsComeBeforeTheText(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Expect("a", Plan{Rounds: 1, Tool: "read", Args: `{"path":"x"}`, Deltas: 1})
	if text, calls := ask(t, s, request(user("a"))); text != "" || calls != "read" {
		t.Errorf("first round: %q, %q", text, calls)
	}
	result := `{"role":"tool","tool_call_id":"call_1","content":"what was in it"}`
	if text, calls := ask(t, s, request(user("a"), result)); text == "" || calls != "" {
		t.Errorf("second round: %q, %q", text, calls)
	}
	if got := s.Requests("a")[1].Result; !strings.Contains(got, "what was in it") {
		t.Errorf("result %q", got)
	}
}

func TestPiecesAreSpreadOverTheirTime(t *testing.T) {
	t.Parallel()
	s := start(t)
	const over = 30 * time.Millisecond
	s.Expect("a", Plan{Deltas: 100, Over: over, Wait: over})
	begun := time.Now()
	ask(t, s, request(user("a")))
	// The last piece is due at 99 hundredths, of which a timer may be early by its grain.
	if took := time.Since(begun); took < 2*over-3*time.Millisecond {
		t.Errorf("it took %v", took)
	}
}
