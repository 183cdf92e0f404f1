// Package claude is what is known of Claude models wherever they run: how they are
// told to think, and which of them keep prompts.
//
// Guarantees: pure functions of a model's id and a level; an id that is not known
// is treated as a newer model.
package claude

import "strings"

// Thinking is how a model is told to think. The zero value leaves it to the model.
type Thinking struct {
	// Budget of thinking tokens, for models up to 4.5.
	Budget int
	// Effort of later ones, which decide themselves: low, medium, high or max.
	Effort string
	// Adaptive leaves a later one to decide how much, without an effort.
	Adaptive bool
}

// room is what an answer gets beside the budget of thinking.
const room = 4096

// Think gives what a level (off, minimal, low, medium, high, xhigh, adaptive, max, ultra)
// means for a model.
// off and empty leave the model's own default: not every model takes the word off.
func Think(id, level string) Thinking {
	var budget int
	effort := level
	switch level {
	case "minimal":
		budget, effort = 1024, "low"
	case "low":
		budget = 2048
	case "medium":
		budget = 8192
	case "high":
		budget = 16384
	case "xhigh":
		budget, effort = 32768, "high"
	case "max", "ultra":
		budget, effort = 32768, "max"
	case "adaptive":
		if takesBudget(base(id)) {
			return Thinking{Budget: 8192}
		}
		return Thinking{Adaptive: true}
	default:
		return Thinking{}
	}
	if takesBudget(base(id)) {
		return Thinking{Budget: budget}
	}
	return Thinking{Effort: effort}
}

// MaxTokens makes room for the budget in the bound of an answer.
func (t Thinking) MaxTokens(asked int) int {
	if t.Budget == 0 {
		return asked
	}
	return max(asked, t.Budget+room)
}

// Budgeted says whether a model thinks within a number of tokens: those up to 4.5.
func Budgeted(id string) bool { return takesBudget(base(id)) }

// Is says whether an id is a Claude model's, with Bedrock's prefixes or without.
func Is(id string) bool { return strings.HasPrefix(base(id), "claude-") }

// KeepsPrompts says whether a model takes marks for prompts to be kept.
func KeepsPrompts(id string) bool {
	b := base(id)
	if !strings.HasPrefix(b, "claude-3") {
		return Is(id)
	}
	return strings.HasPrefix(b, "claude-3-7") || strings.HasPrefix(b, "claude-3-5-haiku")
}

// base strips a region and a maker, as in eu.anthropic.claude-x.
func base(id string) string {
	if i := strings.LastIndex(id, "anthropic."); i >= 0 {
		return id[i+len("anthropic."):]
	}
	return id
}

// takesBudget knows the models up to 4.5, which think within a number of tokens.
func takesBudget(name string) bool {
	if strings.HasPrefix(name, "claude-3") {
		return true
	}
	for _, family := range [...]string{"claude-opus-4", "claude-sonnet-4", "claude-haiku-4"} {
		rest, ok := strings.CutPrefix(name, family)
		if !ok {
			continue
		}
		// 4.0 has a date or nothing behind it, 4.1 and 4.5 the digit.
		return rest == "" || strings.HasPrefix(rest, "-20") || strings.HasPrefix(rest, "-0") ||
			strings.HasPrefix(rest, "-1") || strings.HasPrefix(rest, "-5")
	}
	return false
}
