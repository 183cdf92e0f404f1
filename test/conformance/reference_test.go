package conformance

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"laneway/test/mockmodel"
	"laneway/test/serving"
)

// step is what the script of the reference client reports.
type step struct {
	Step       string   `json:"step"`
	OK         bool     `json:"ok"`
	Error      string   `json:"error"`
	Protocol   int      `json:"protocol"`
	Healthy    bool     `json:"healthy"`
	DefaultID  string   `json:"defaultId"`
	Accepted   string   `json:"accepted"`
	RunID      any      `json:"runId"`
	Status     string   `json:"status"`
	Text       string   `json:"text"`
	Increasing bool     `json:"increasing"`
	Streams    []string `json:"streams"`
	Same       bool     `json:"same"`
	Code       string   `json:"code"`
	Message    string   `json:"message"`
	Ended      bool     `json:"ended"`
	Members    []string `json:"members"`
	Aborted    bool     `json:"aborted"`
	RunIDs     int      `json:"runIds"`
	Roles      []string `json:"roles"`
	More       bool     `json:"more"`
	Phases     []string `json:"phases"`
}

func TestReferenceClient(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.model.Script(
		mockmodel.Reply{Match: "reference stall", Text: []string{"going ", "on"}, Stall: true},
		mockmodel.Reply{Match: "reference tool", Calls: []mockmodel.Call{{ID: "call_1", Name: "ls", Arguments: `{"path":"."}`}}},
		mockmodel.Reply{Match: "reference tool", After: true, Text: []string{"done"}},
	)
	r, err := b.stock(t).Script(t.Context(), "testdata/reference.mjs", b.proxy.URL, serving.Token)
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Wait()
	if err != nil {
		t.Fatal(err)
	}
	steps := map[string]step{}
	for line := range strings.Lines(res.Stdout) {
		var s step
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		steps[s.Step] = s
	}
	if failed := steps["failed"]; res.Code != 0 || failed.Error != "" {
		t.Fatalf("the script failed: %s\n%v", failed.Error, res)
	}
	for name, ok := range map[string]func(s step) bool{
		"connect":     func(s step) bool { return s.Protocol == 4 },
		"health":      func(s step) bool { return s.Healthy },
		"agents.list": func(s step) bool { return s.DefaultID == "main" },
		"agent": func(s step) bool {
			return s.Accepted == "accepted" && s.RunID == true && s.Text == "You said: reference one"
		},
		"agent events": func(s step) bool {
			return s.Increasing && slices.Contains(s.Streams, "lifecycle") && slices.Contains(s.Streams, "assistant")
		},
		"agent repeated": func(s step) bool { return s.Same },
		"agent conflict": func(s step) bool { return s.Code == "INVALID_REQUEST" },
		"agent.wait":     func(s step) bool { return s.Status == "ok" && s.Ended },
		"agent.wait unknown": func(s step) bool {
			return s.Status == "timeout" && slices.Equal(s.Members, []string{"runId", "status"})
		},
		"chat.send":          func(s step) bool { return s.Status == "started" && s.Text == "You said: reference two" },
		"chat.abort":         func(s step) bool { return s.Aborted && s.RunIDs == 1 },
		"chat.abort nothing": func(s step) bool { return !s.Aborted },
		"chat.history": func(s step) bool {
			return slices.Equal(s.Roles, []string{"user", "assistant", "user", "assistant", "user", "assistant"})
		},
		"tool":                     func(s step) bool { return slices.Equal(s.Phases, []string{"start", "result"}) },
		"sessions.resolve missing": func(s step) bool { return strings.HasPrefix(s.Message, "No session found: agent:main:nobody") },
		"unknown method":           func(s step) bool { return s.Message == "unknown method: no.such.method" },
		"missing param":            func(s step) bool { return strings.Contains(s.Message, "idempotencyKey") },
		"extra param":              func(s step) bool { return strings.Contains(s.Message, "foo") },
		"unknown agent":            func(s step) bool { return s.Code == "INVALID_REQUEST" && strings.Contains(s.Message, "nobody") },
		"sessions.delete":          func(step) bool { return true },
	} {
		if s, reported := steps[name]; !reported || !ok(s) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
