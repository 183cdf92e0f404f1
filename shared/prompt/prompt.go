// Package prompt builds the system prompt of a run.
//
// Guarantees: Build is a pure function of its Input, so the same input gives the
// same bytes on every machine; what changes from turn to turn (date, session,
// model, caller's context) stands behind what does not, and the place between is
// returned as a split, never as a marker in the text, so that a provider's prompt
// cache can be cut there; every injected file is bounded (see Limits), and a cut
// one says so and how to read the rest. Loading files never leaves the workspace.
package prompt

import (
	"strings"
	"time"
)

// Mode is how much of the prompt is wanted.
type Mode string

// The modes. The empty Mode is Full.
const (
	Full    Mode = "full"
	Minimal Mode = "minimal" // sub-agents: no habits of conversation
	None    Mode = "none"    // who it is and which model, nothing else
)

// Input is everything that the prompt depends on. Zero fields leave their part out.
type Input struct {
	Mode      Mode
	AgentName string
	Tools     []Tool
	// Workspace is the directory as the agent should name it. WorkDir is where
	// its tools run, if that is another one.
	Workspace, WorkDir string
	// Files are the bootstrap files, in any order; Limits bound them.
	Files  []File
	Limits Limits
	// Now and Zone give the date; a zero Now leaves it out, a nil Zone is UTC.
	Now  time.Time
	Zone *time.Location
	// SilentReplies tells the agent how to say nothing; for turns where nobody
	// is owed an answer.
	SilentReplies bool
	// Extra is the caller's extraSystemPrompt.
	Extra   string
	Runtime Runtime
}

// Tool is a line of the list of tools.
type Tool struct{ Name, Summary string }

// Runtime describes the run in one line. Empty fields are left out.
type Runtime struct {
	Agent, Session, SessionID string
	Host, OS, Arch            string
	Model, DefaultModel       string // provider/model
	Shell, Channel            string
	Capabilities              []string
	Thinking                  string // level
}

// Prompt is a system prompt in its two parts.
type Prompt struct {
	Stable   string // the same for every turn until configuration or files change
	Volatile string
	Report   Report
}

// String is the prompt as the model gets it.
func (p Prompt) String() string {
	switch {
	case p.Stable == "":
		return p.Volatile
	case p.Volatile == "":
		return p.Stable
	}
	return p.Stable + "\n\n" + p.Volatile
}

// Report says what was injected, for diagnostics.
type Report struct {
	Chars int // of the whole prompt
	Files []FileReport
}

// Build renders the prompt.
func Build(in Input) Prompt {
	if in.Mode == None {
		p := Prompt{Stable: identity(in), Volatile: modelLine(in.Runtime)}
		p.Report.Chars = charsOf(p)
		return p
	}
	files, reports := fit(in.Files, in.Limits)
	minimal := in.Mode == Minimal
	stable := sections{identity(in)}
	if len(in.Tools) > 0 || !minimal {
		stable.add("## Tooling", tooling(in.Tools))
	}
	if len(in.Tools) > 0 {
		stable.add("## Tool Call Style", toolStyle)
	}
	if !minimal {
		stable.add("## Execution Bias", executionBias)
		stable.add("## Promised Work", promisedWork)
	}
	stable.add("## Safety", safety)
	workspaceTitle, workspaceText := workspaceSection(in)
	stable.add(workspaceTitle, workspaceText)
	if truncated(reports) {
		stable.add("## Bootstrap Context Notice", truncationNotice)
	}
	stable.add("# Project Context", projectContext(files))

	volatile := sections{}
	volatile.add("## Temporal Context", temporal(in, hasTool(in.Tools, "session_status")))
	if in.SilentReplies && !minimal {
		volatile.add("## Silent Replies", silentReplies)
	}
	if minimal {
		volatile.add("## Subagent Context", strings.TrimSpace(in.Extra))
	} else {
		volatile.add("## Conversation Context", strings.TrimSpace(in.Extra))
	}
	volatile.add("## Runtime", runtimeSection(in.Runtime))

	p := Prompt{Stable: stable.String(), Volatile: volatile.String(), Report: Report{Files: reports}}
	p.Report.Chars = charsOf(p)
	return p
}

// sections are blocks of text with an empty line between them.
type sections []string

// add appends a block under its heading, unless the block is empty.
func (s *sections) add(heading, body string) {
	if body != "" {
		*s = append(*s, heading+"\n"+body)
	}
}

func (s *sections) String() string { return strings.Join(*s, "\n\n") }
