package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"laneway/test/mockmodel"
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

// wanted is what each step of the script must have seen.
var wanted = map[string]func(s step) bool{
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
	"queued":                   func(s step) bool { return slices.Equal(s.Roles, []string{"ok", "ok", "ok", "ok"}) },
	"sessions.create":          func(s step) bool { return s.Status == "started" },
	"sessions.resolve missing": func(s step) bool { return strings.HasPrefix(s.Message, "No session found: agent:main:nobody") },
	"unknown method":           func(s step) bool { return s.Message == "unknown method: no.such.method" },
	"missing param":            func(s step) bool { return strings.Contains(s.Message, "idempotencyKey") },
	"extra param":              func(s step) bool { return strings.Contains(s.Message, "foo") },
	"unknown agent":            func(s step) bool { return s.Code == "INVALID_REQUEST" && strings.Contains(s.Message, "nobody") },
	"sessions.delete":          func(step) bool { return true },
}

// ReferenceReplies are the replies that the reference client's run needs of a model.
func ReferenceReplies() []mockmodel.Reply {
	return []mockmodel.Reply{
		{Match: "reference stall", Text: []string{"going ", "on"}, Stall: true},
		{Match: "reference slow", Text: slices.Repeat([]string{"slowly "}, 12), PauseMs: 150},
		{Match: "reference tool", Calls: []mockmodel.Call{{ID: "call_1", Name: "ls", Arguments: `{"path":"."}`}}},
		{Match: "reference tool", After: true, Text: []string{"done"}},
	}
}

// Reference runs the reference client, by the script at the path, through what is
// promised to it, and says what was not kept. The model must have ReferenceReplies.
func (s Stock) Reference(ctx context.Context, script string) (findings []string, err error) {
	r, err := s.Script(ctx, script, s.URL, s.Token)
	if err != nil {
		return nil, err
	}
	res, err := r.Wait()
	if err != nil {
		return nil, err
	}
	steps := map[string]step{}
	for line := range strings.Lines(res.Stdout) {
		var s step
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			return nil, fmt.Errorf("%w: %s", err, line)
		}
		steps[s.Step] = s
	}
	if failed := steps["failed"]; res.Code != 0 || failed.Error != "" {
		return nil, fmt.Errorf("the script failed: %s\n%v", failed.Error, res)
	}
	for name, ok := range wanted {
		if s, reported := steps[name]; !reported || !ok(s) {
			findings = append(findings, fmt.Sprintf("%s: %+v", name, s))
		}
	}
	return findings, nil
}
