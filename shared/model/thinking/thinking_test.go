package thinking_test

import (
	"slices"
	"testing"

	"laneway/shared/model/thinking"
)

// Section 8, row /think: levels and other spellings.
func TestParse(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"off": "off", "minimal": "minimal", "low": "low", "medium": "medium", "HIGH": "high", "xhigh": "xhigh", "adaptive": "adaptive",
		"max": "max", "ultra": "ultra", "x-high": "xhigh", "x_high": "xhigh", "extra-high": "xhigh", "extra high": "xhigh", "extra_high": "xhigh",
		"highest": "high", "on": "low",
	} {
		if got, ok := thinking.Parse(word); !ok || got != want {
			t.Errorf("%q is %q, %v", word, got, ok)
		}
	}
	for _, word := range []string{"", "hard", "highh"} {
		if got, ok := thinking.Parse(word); ok {
			t.Errorf("%q is %q", word, got)
		}
	}
}

// A stored level that a model does not know is remapped by rank.
func TestNearest(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, row := range []struct {
		model       thinking.Model
		level, want string
	}{
		{thinking.Model{API: "openai-completions", ID: "gpt-5.4"}, "max", "xhigh"},
		{thinking.Model{API: "openai-completions", ID: "gpt-5"}, "xhigh", "high"},
		{thinking.Model{API: "openai-completions", ID: "gpt-4o"}, "high", "off"},
		{thinking.Model{API: "openai-completions", ID: "mine"}, "ultra", "high"},
		{thinking.Model{API: "openai-completions", ID: "mine", Reasoning: &yes}, "minimal", "minimal"},
		{thinking.Model{API: "openai-completions", ID: "mine", Reasoning: &no}, "low", "off"},
		{thinking.Model{API: "anthropic-messages", ID: "claude-sonnet-4-5"}, "ultra", "xhigh"},
		{thinking.Model{API: "anthropic-messages", ID: "claude-opus-5"}, "xhigh", "high"},
		{thinking.Model{API: "bedrock-converse-stream", ID: "eu.anthropic.claude-opus-5"}, "ultra", "max"},
		{thinking.Model{API: "anthropic-messages", ID: "claude-opus-5"}, "", ""},
		{thinking.Model{API: "anthropic-messages", ID: "claude-opus-5"}, "off", "off"},
	} {
		if got := thinking.Nearest(row.level, thinking.Levels(row.model)); got != row.want {
			t.Errorf("%s of %s is %q, want %q (%v)", row.level, row.model.ID, got, row.want, thinking.Levels(row.model))
		}
	}
	if all := thinking.All; !slices.Contains(all, thinking.Ultra) || len(all) != 9 {
		t.Error(all)
	}
}
