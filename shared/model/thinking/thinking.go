// Package thinking knows the levels at which models can be asked to think.
//
// Guarantees: pure functions; a level that a model does not know becomes the nearest
// one that it knows by rank, and never "off" where something was asked for, so that a
// stored preference outlives a change of the model.
package thinking

import (
	"slices"
	"strings"

	"laneway/shared/model/claude"
)

// The levels, as they are stored and sent.
const (
	Off      = "off"
	Minimal  = "minimal"
	Low      = "low"
	Medium   = "medium"
	High     = "high"
	XHigh    = "xhigh"
	Adaptive = "adaptive" // the model decides
	Max      = "max"
	Ultra    = "ultra"
)

// All levels in the order in which they are shown.
var All = []string{Off, Minimal, Low, Medium, High, XHigh, Adaptive, Max, Ultra}

// ranks are how much a level asks for.
var ranks = map[string]int{Off: 0, Minimal: 1, Low: 2, Medium: 3, Adaptive: 3, High: 4, XHigh: 5, Max: 6, Ultra: 7}

var aliases = map[string]string{
	"x-high": XHigh, "x_high": XHigh, "extra-high": XHigh, "extra high": XHigh, "extra_high": XHigh, "extrahigh": XHigh,
	"highest": High, "on": Low, "min": Minimal, "mid": Medium, "med": Medium, "none": Off,
}

// Parse reads a level as users write it.
func Parse(word string) (level string, ok bool) {
	word = strings.ToLower(strings.TrimSpace(word))
	if a, found := aliases[word]; found {
		return a, true
	}
	_, ok = ranks[word]
	return word, ok
}

// Names is a list for people.
func Names(levels []string) []string { return slices.Clone(levels) }

// Model is what the levels of a model follow from.
type Model struct {
	API       string // openai-completions, anthropic-messages, bedrock-converse-stream
	ID        string
	Reasoning *bool // configured; nil: known by the id
}

// APIOf is how a provider that no configuration describes is spoken to.
func APIOf(provider string) string {
	switch provider {
	case "anthropic":
		return "anthropic-messages"
	case "bedrock":
		return "bedrock-converse-stream"
	}
	return "openai-completions"
}

// Levels are what a model takes: off alone where it does not reason, the plain ones where
// nothing is known of it.
func Levels(m Model) []string {
	if m.Reasoning != nil && !*m.Reasoning {
		return []string{Off}
	}
	told := m.Reasoning != nil
	switch {
	case claude.Is(m.ID) && m.API != "openai-completions":
		if claude.Budgeted(m.ID) {
			return []string{Off, Minimal, Low, Medium, High, XHigh}
		}
		return []string{Off, Minimal, Low, Medium, High, Adaptive, Max}
	case m.API == "openai-completions" && OpenAIReasons(m.ID) && newest(m.ID):
		return []string{Off, Minimal, Low, Medium, High, XHigh}
	case m.API == "openai-completions" && !told && known(m.ID) && !OpenAIReasons(m.ID):
		return []string{Off}
	}
	return []string{Off, Minimal, Low, Medium, High}
}

// known are OpenAI's own ids: what of them does not reason is known not to.
func known(id string) bool { return strings.HasPrefix(id, "gpt-") }

// OpenAIReasons knows the ids of OpenAI's models that reason.
func OpenAIReasons(id string) bool {
	five := strings.HasPrefix(id, "gpt-5") || strings.HasPrefix(id, "gpt-6")
	oSeries := len(id) > 1 && id[0] == 'o' && id[1] >= '0' && id[1] <= '9'
	return (five || oSeries) && !strings.Contains(id, "chat")
}

// newest are the models that take xhigh: from 5.2 on.
func newest(id string) bool {
	rest, ok := strings.CutPrefix(id, "gpt-5.")
	return strings.HasPrefix(id, "gpt-6") || ok && rest != "" && rest[0] >= '2' && rest[0] <= '9'
}

// Nearest is the level that a model knows which is closest to the one that is wanted:
// itself, else the largest below it that is not off, else the smallest above it. A model
// that knows off alone gets off.
func Nearest(level string, known []string) string {
	if level == "" || slices.Contains(known, level) {
		return level
	}
	below, above := "", ""
	for _, k := range known {
		if k == Off || k == Adaptive {
			continue
		}
		switch {
		case ranks[k] <= ranks[level] && (below == "" || ranks[k] > ranks[below]):
			below = k
		case ranks[k] > ranks[level] && (above == "" || ranks[k] < ranks[above]):
			above = k
		}
	}
	switch {
	case below != "":
		return below
	case above != "" && level != Off:
		return above
	}
	return Off
}
