package reply

import (
	"fmt"
	"strings"
	"time"
)

// The texts that a run says in its own name when the model did not answer.
const (
	TextOutputLimit = "⚠️ Reply truncated at the model's output token limit. The text above is partial — ask to continue it."
	TextIncomplete  = "⚠️ Agent couldn't generate a response. Please try again."
	TextSideEffects = "⚠️ Agent couldn't generate a response. Some tool actions may already have been executed: check their outcome before you try again."
)

// Payload is one message of a reply.
type Payload struct {
	Text        string
	IsError     bool
	IsReasoning bool
	// IsSummary marks what is told of a tool call.
	IsSummary bool
}

// ToolFailure is the last failed call that no later success of the same action has
// made good.
type ToolFailure struct {
	Label    string // of the tool, for people
	Error    string // the raw error; shown with Full only
	Blocked  bool   // it was refused, not tried
	ExitCode *int
	TimedOut time.Duration // after which it was stopped; 0: it was not
}

// Input is what a run has to say at its end. Zero fields are not there.
type Input struct {
	// Answer is the text that clients were shown of the model's last message.
	Answer string
	// Silent: the model chose to say nothing.
	Silent bool
	// Summaries of tool calls, where the session asks for them.
	Summaries []string
	// Reasoning is shown before the answer where the session asks for it.
	Reasoning string
	// Heartbeat: the run was one; its acknowledgement is dropped.
	Heartbeat bool
	// Unwatched: no user waits for the reply who would learn of a failure in another way.
	Unwatched bool
	// OutputLimit: the answer was cut at the model's output limit.
	OutputLimit bool
	// SideEffects: tools that change something have run.
	SideEffects bool
	// LastToolError, if the last tool call failed.
	LastToolError *ToolFailure
	// Full shows raw errors of tools.
	Full bool
	// Sent are the messages that tools delivered; Origin is where the run came from.
	Sent   []Sent
	Origin Target
}

// Assemble makes the payloads of a run's end, in their order: summaries of tools,
// reasoning, the answer, a warning. A run that chose silence says nothing; one that has
// nothing renderable says why, once.
func Assemble(in Input) []Payload {
	var out []Payload
	for _, text := range in.Summaries {
		out = append(out, Payload{Text: text, IsSummary: true})
	}
	text, silent := visible(in)
	if text == "" {
		return append(out, excuse(in, silent)...)
	}
	if r := strings.TrimSpace(in.Reasoning); r != "" {
		out = append(out, Payload{Text: r, IsReasoning: true})
	}
	out = append(out, Payload{Text: text})
	if in.OutputLimit {
		out = append(out, Payload{Text: TextOutputLimit, IsError: true})
	}
	return out
}

// visible is what is to be shown of the answer. silent says that there is nothing
// because the agent chose so.
func visible(in Input) (text string, silent bool) {
	if in.Silent {
		return "", true
	}
	text, acknowledged := Heartbeat(in.Answer, in.Heartbeat)
	switch {
	case acknowledged:
		return "", true
	case strings.TrimSpace(text) == "", Duplicate(text, in.Origin, in.Sent):
		return "", false
	}
	return text, false
}

// excuse is what the run says in its own name when nothing else is left to show.
func excuse(in Input, silent bool) []Payload {
	say := func(text string) []Payload { return []Payload{{Text: text, IsError: true}} }
	switch {
	case len(in.Sent) > 0, silent && !in.Unwatched:
		return nil
	case in.LastToolError != nil:
		return say(in.LastToolError.text(in.Full))
	case silent:
		return nil
	case in.SideEffects:
		return say(TextSideEffects)
	}
	return say(TextIncomplete)
}

func (f *ToolFailure) text(full bool) string {
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
	if full && f.Error != "" {
		text += ": " + f.Error
	}
	return text
}
