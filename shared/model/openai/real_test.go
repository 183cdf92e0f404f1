package openai

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/modeltest"
	"laneway/shared/model/wire"
)

// realModel is a provider for the server at LANEWAY_REAL_MODEL_URL and its first
// model; without one the test is skipped. `make model` sets it.
func realModel(t *testing.T) (*Provider, model.Request) {
	t.Helper()
	base := os.Getenv("LANEWAY_REAL_MODEL_URL")
	if base == "" {
		t.Skip("LANEWAY_REAL_MODEL_URL is not set: no real model to talk to")
	}
	client := wire.Client()
	t.Cleanup(client.CloseIdleConnections)
	p, err := New(Config{BaseURL: base, APIKey: "none", HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	list, err := p.ListModels(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := ask("Tell me a long story about a fox and a lane.")
	r.Model, r.System, r.MaxOutputTokens = list[0].ID, "You are a storyteller.", 60
	return p, r
}

func TestRealModelStreamsATurn(t *testing.T) {
	t.Parallel()
	p, r := realModel(t)
	turn := modeltest.Collect(t, p.Stream(t.Context(), r))
	if turn.Err != nil || len(turn.Texts) < 2 {
		t.Errorf("texts = %q, err = %v", turn.Texts, turn.Err)
	}
}

func TestRealModelTakesAToolTurnBack(t *testing.T) {
	t.Parallel()
	p, r := realModel(t)
	r.Messages = append(r.Messages,
		model.Message{Role: model.Assistant, StopReason: "toolUse", Content: []model.Block{callBlock("call_1", "ls", `{"path":"."}`)}},
		model.Message{Role: model.ToolResult, ToolCallID: "call_1", ToolName: "ls", Content: []model.Block{{Type: model.Text, Text: "README.md"}}})
	if turn := modeltest.Collect(t, p.Stream(t.Context(), r)); turn.Err != nil {
		t.Errorf("err = %v", turn.Err)
	}
}

// Only --chat_format chatml-function-calling obeys a named tool.
func TestRealModelCallsAForcedTool(t *testing.T) {
	t.Parallel()
	p, r := realModel(t)
	if os.Getenv("LANEWAY_REAL_MODEL_FORMAT") != "chatml-function-calling" {
		t.Skip("LANEWAY_REAL_MODEL_FORMAT is not chatml-function-calling: the server ignores tools")
	}
	r.Messages = ask("Which files are in the folder src?").Messages
	r.MaxOutputTokens, r.ToolChoice = 80, "ls"
	r.Tools = []model.Tool{{Name: "ls", Description: "Lists a folder.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}}
	turn := modeltest.Collect(t, p.Stream(t.Context(), r))
	if turn.Err != nil || len(turn.Calls) != 1 || turn.Calls[0].Name != "ls" || turn.Done == nil || turn.Done.StopReason != "toolUse" {
		t.Fatalf("turn = %+v", turn)
	}
	var args map[string]any
	if err := json.Unmarshal(turn.Calls[0].Arguments, &args); err != nil || len(args) == 0 {
		t.Errorf("arguments = %s", turn.Calls[0].Arguments)
	}
}

func TestRealModelIsAbortedInMidStream(t *testing.T) {
	t.Parallel()
	p, r := realModel(t)
	r.MaxOutputTokens = 1000
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var (
		last  error
		texts int
		at    time.Time
	)
	for part, err := range p.Stream(ctx, r) {
		last = err
		if part.Text != "" {
			texts++
		}
		if texts == 3 && at.IsZero() {
			at = time.Now()
			cancel()
		}
	}
	if model.ClassOf(last) != model.Aborted || at.IsZero() || time.Since(at) > time.Second {
		t.Errorf("err = %v, %s after the abort", last, time.Since(at))
	}
}
