package session

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Work is what the holder of a claim is at.
type Work struct {
	Kind   string // one of the Work… constants; empty: between two pieces of work
	Tool   string // of WorkTool: its name
	CallID string // of WorkTool: the model's id of the call
	Since  int64  // ms
	// Limit is how long it may take or be silent by its own rule; 0: it has none,
	// negative: for ever.
	Limit time.Duration
	// Rule is the code of the rule that gave Limit to a WorkModel (package timeout).
	Rule string
}

// Kinds of work.
const (
	WorkModel    = "model_call"
	WorkTool     = "tool_call"
	WorkRetry    = "retry_wait" // a pause before the same model is asked again
	WorkQuestion = "question"   // a person is to answer
)

// Progress is what the holder of a claim last said about the run under it. It is
// kept in META and travels with writes that are made anyway, so it may be as old as
// a renewal of the claim; it is never the ground for a write that must be right.
// Messages that arrive are no progress: only the holder writes it.
type Progress struct {
	At   int64  // ms of the last sign of life
	Why  string // which: one of the Progress… constants
	Work Work
	// Asked is since when (ms) model requests have been made again without anything
	// coming back; 0: they have not.
	Asked int64
}

// Signs of life.
const (
	ProgressRun         = "embedded_run:started"
	ProgressEnded       = "embedded_run:ended" // terminal: nothing but the last commit is left
	ProgressCompleted   = "run:completed"      // terminal: committed
	ProgressModel       = "model_call:started"
	ProgressStream      = "model_call:stream_progress"
	ProgressModelEnded  = "model_call:ended"
	ProgressTool        = "tool:started"
	ProgressToolUpdated = "tool:updated"
	ProgressToolEnded   = "tool:ended"
	ProgressStatus      = "status"
)

// Terminal says whether nothing can follow the last sign of life.
func (p Progress) Terminal() bool { return p.Why == ProgressEnded || p.Why == ProgressCompleted }

// codes shorten the constants: the hot item is billed by its size.
var codes = map[string]string{
	ProgressRun: "r", ProgressEnded: "R", ProgressCompleted: "C", ProgressModel: "m", ProgressStream: "s", ProgressModelEnded: "M",
	ProgressTool: "t", ProgressToolUpdated: "u", ProgressToolEnded: "T", ProgressStatus: "i",
	WorkModel: "wm", WorkTool: "wt", WorkRetry: "wr", WorkQuestion: "wq",
}

var names = func() map[string]string {
	m := make(map[string]string, len(codes))
	for name, code := range codes {
		m[code] = name
	}
	return m
}()

// maxName bounds a tool's name and its call's id in the hot item, in bytes.
const maxName = 40

// Value is the progress as META keeps it: fields behind each other, numbers in base
// 36, as many as have a value.
func (p Progress) Value() string {
	fields := []string{
		number(p.At), short(p.Why), short(p.Work.Kind), number(p.Work.Since), number(p.Work.Limit.Milliseconds()), number(p.Asked),
		clipName(p.Work.Tool), clipName(p.Work.CallID), clipName(p.Work.Rule),
	}
	return strings.TrimRight(strings.Join(fields, "|"), "|")
}

// ParseProgress is the inverse of Value. Of what it cannot read it makes zero values.
func ParseProgress(s string) Progress {
	f := strings.SplitN(s, "|", 9)
	for len(f) < 9 {
		f = append(f, "")
	}
	return Progress{
		At: parsed(f[0]), Why: long(f[1]), Asked: parsed(f[5]),
		Work: Work{Kind: long(f[2]), Since: parsed(f[3]), Limit: time.Duration(parsed(f[4])) * time.Millisecond, Tool: f[6], CallID: f[7], Rule: f[8]},
	}
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 36)
}

func parsed(s string) int64 {
	n, err := strconv.ParseInt(s, 36, 64)
	if err != nil {
		return 0
	}
	return n
}

func short(name string) string {
	if c, ok := codes[name]; ok {
		return c
	}
	return clipName(name)
}

func long(code string) string {
	if n, ok := names[code]; ok {
		return n
	}
	return code
}

func clipName(s string) string {
	s = strings.ReplaceAll(s, "|", "_")
	for len(s) > maxName {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}
