package reply

import (
	"fmt"
	"strings"
	"time"
)

// The texts that a run says in its own name when the model did not answer.
const (
	TextOutputLimit   = "⚠️ Reply truncated at the model's output token limit. The text above is partial — ask to continue it."
	TextIncomplete    = "⚠️ Agent couldn't generate a response. Please try again."
	TextSideEffects   = "⚠️ Agent couldn't generate a response. Some tool actions may already have been executed: check their outcome before you try again."
	TextLostYield     = "⚠️ Turn yielded without a continuation source. Send a message to resume."
	TextRetryLimit    = "Request failed after repeated internal retries. Please try again, or use /new to start a fresh session."
	TextDefaultFailed = "LLM request failed."
)

// Payload is one message of a reply.
type Payload struct {
	Text        string   `json:"text,omitempty"`
	Media       []string `json:"mediaUrls,omitempty"`
	IsError     bool     `json:"isError,omitempty"`
	IsReasoning bool     `json:"isReasoning,omitempty"`
	// IsWarning marks what the run itself says beside the answer.
	IsWarning bool `json:"-"`
}

// ToolFailure is the last failed call that no later success of the same action has
// made good.
type ToolFailure struct {
	Label    string // of the tool, for people
	Error    string // the raw error; shown with Verbose only
	Blocked  bool   // it was refused, not tried
	ExitCode *int
	TimedOut time.Duration // after which it was stopped; 0: it was not
}

// Input is what a run has to say at its end. Zero fields are not there.
type Input struct {
	// Answers are the texts of the assistant's messages, in order, as the model
	// wrote them.
	Answers []string
	Media   []string
	// Reasoning is shown before the answer where the session asks for it.
	Reasoning string
	// Error is the text of the error that ended the run.
	Error string
	// Heartbeat: the run was one; its acknowledgement is dropped.
	Heartbeat bool
	// OutputLimit: the last message was cut at the model's output limit.
	OutputLimit bool
	// SideEffects: tools that change something have run.
	SideEffects bool
	// Aborted: somebody stopped the run; it owes no excuse.
	Aborted bool
	// LastToolError, if the last tool call failed.
	LastToolError *ToolFailure
	// Verbose shows raw errors of tools.
	Verbose bool
	// Sent are the messages that tools delivered; Origin is where the run came from.
	Sent   []Sent
	Origin Target
}

// Assemble makes the payloads of a run's end, in their order: error, reasoning,
// answers without repetitions, warnings. An error keeps the answers of its attempt
// back. A run that chose silence says nothing; one that has nothing renderable says
// why, once.
func Assemble(in Input) []Payload {
	var out []Payload
	if in.Error != "" {
		return append(out, Payload{Text: in.Error, IsError: true})
	}
	answers, silent := visibleAnswers(in)
	media := NewMedia(in.Media, in.Origin, in.Sent)
	if r := strings.TrimSpace(in.Reasoning); r != "" && len(answers) > 0 {
		out = append(out, Payload{Text: r, IsReasoning: true})
	}
	for _, text := range answers {
		out = append(out, Payload{Text: text})
	}
	if len(media) > 0 {
		if len(answers) > 0 {
			out[len(out)-1].Media = media
		} else {
			out = append(out, Payload{Media: media})
		}
	}
	return append(out, warnings(in, len(out) > 0, silent)...)
}

// visibleAnswers are the texts that are to be shown. silent says that there is none
// because the agent chose so.
func visibleAnswers(in Input) (shown []string, silent bool) {
	seen := map[string]bool{}
	for _, raw := range in.Answers {
		text := raw
		if IsSilent(text) {
			silent = true
			continue
		}
		text = strings.TrimSpace(Strip(text))
		text, acknowledged := Heartbeat(text, in.Heartbeat)
		if acknowledged {
			silent = true
			continue
		}
		key := normalise(text)
		if text == "" || key != "" && seen[key] || Duplicate(text, in.Origin, in.Sent) {
			continue
		}
		seen[key] = true
		shown = append(shown, text)
	}
	return shown, silent && len(shown) == 0
}

// warnings are what the run says in its own name: after a cut answer, and when
// nothing else is left to show.
func warnings(in Input, rendered, silent bool) []Payload {
	warn := func(text string) []Payload { return []Payload{{Text: text, IsError: true, IsWarning: true}} }
	if rendered {
		if in.OutputLimit {
			return warn(TextOutputLimit)
		}
		return nil
	}
	if in.Aborted || len(in.Sent) > 0 {
		return nil
	}
	if silent {
		// A heartbeat has no user who would learn of a failure in another way.
		if in.Heartbeat && in.LastToolError != nil {
			return warn(failureText(*in.LastToolError, in.Verbose))
		}
		return nil
	}
	switch {
	case in.LastToolError != nil:
		return warn(failureText(*in.LastToolError, in.Verbose))
	case in.SideEffects:
		return warn(TextSideEffects)
	}
	return warn(TextIncomplete)
}

func failureText(f ToolFailure, verbose bool) string {
	label := f.Label
	if label == "" {
		label = "Tool"
	}
	text := "⚠️ " + label + " failed"
	switch {
	case f.Blocked:
		text = "⚠️ " + label + " blocked"
	case f.TimedOut > 0:
		text = fmt.Sprintf("⚠️ %s timed out after %ds", label, int(f.TimedOut.Round(time.Second)/time.Second))
	case f.ExitCode != nil:
		text += fmt.Sprintf(" (exit %d)", *f.ExitCode)
	}
	if verbose && f.Error != "" {
		text += ": " + f.Error
	}
	return text
}
