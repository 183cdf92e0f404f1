package loop

import (
	"cmp"
	"strings"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/thinking"
)

// fastFor is how long after its begin a run in fast mode "auto" is fast.
const fastFor = time.Minute

// Levels of a model; the same for whoever asks.
func levels(s model.Selected) []string {
	m := thinking.Model{API: s.API, ID: s.Model}
	if s.Reasons || s.Plain {
		m.Reasoning = &s.Reasons
	}
	if m.API == "" {
		m.API = thinking.APIOf(s.Name)
	}
	return thinking.Levels(m)
}

// thinking is the level of the run: the message's own, the session's, the agent's. One
// that the model does not know becomes the nearest that it does.
func (a *attempt) thinking() string {
	level := cmp.Or(a.st.Input.Thinking, a.entry.ThinkingLevel, a.preferred.Thinking)
	if known, ok := thinking.Parse(level); ok {
		level = known
	}
	return thinking.Nearest(level, levels(a.sel))
}

// fast is what the provider is told of fast mode.
func (a *attempt) fast() string {
	switch cmp.Or(a.st.Input.Fast, a.entry.FastMode, a.preferred.Fast) {
	case "on":
		return model.FastOn
	case "off":
		return model.FastOff
	case "auto":
		if a.r.Clock.Now().Sub(time.UnixMilli(a.st.StartedAt)) < fastFor {
			return model.FastOn
		}
	}
	return ""
}

// verbose says how much of tool calls people are told: on, full or off.
func (a *attempt) verbose() string {
	return cmp.Or(a.st.Input.Verbose, a.entry.VerboseLevel, a.preferred.Verbose, "off")
}

// reasoning says whether people are shown what the model thought.
func (a *attempt) reasoning() string {
	return cmp.Or(a.st.Input.Reasoning, a.entry.ReasoningLevel, a.preferred.Reasoning, "off")
}

// thoughts is what a model thought in a message, as far as it told.
func thoughts(blocks []model.Block) string {
	var parts []string
	for i := range blocks {
		if t := strings.TrimSpace(blocks[i].Thinking); blocks[i].Type == model.Thinking && t != "" {
			parts = append(parts, t)
		}
	}
	return strings.Join(parts, "\n\n")
}

// Preferred is what holds where neither message nor session say anything.
type Preferred struct {
	Thinking, Verbose, Reasoning, Fast string
	// Timeout of runs; 0: not said; negative: none.
	Timeout time.Duration
}
