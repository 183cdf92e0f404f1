package loop

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"laneway/shared/model"
	"laneway/shared/protocol"
	"laneway/shared/reply"
	"laneway/shared/tool"
	"laneway/shared/transcript"
)

// maxSummaries bounds what is told of a run's tool calls, in bytes as encoded: the answer
// must have room beside it.
const maxSummaries = 64 << 10

// report is what a run's tools did, as its end tells it.
type report struct {
	summaries []string           // of calls that people wanted to be told of
	failure   *reply.ToolFailure // the last one that was not made good
	acted     bool               // something may have been changed

	size, untold int // of summaries, in bytes as encoded; calls without one
}

// sent lists the messages of the run's tools that reached people.
func (a *attempt) sent() (out []reply.Sent) {
	for i := range a.rows {
		if e := &a.rows[i]; e.RunID == a.st.RunID {
			out = append(out, e.Sent...)
		}
	}
	return out
}

// report reads the run's calls from the conversation, so attempts before this one count.
func (a *attempt) report() report {
	var r report
	var failed model.Block
	calls := map[string]model.Block{}
	for i := range a.rows {
		e := &a.rows[i]
		if e.RunID != a.st.RunID {
			continue
		}
		for _, b := range e.Content {
			if b.Type == model.ToolCall {
				calls[b.ID] = b
			}
		}
		if e.Role != model.ToolResult {
			continue
		}
		call, effect := calls[e.ToolCallID], tool.Unsafe
		if a.tools != nil {
			effect = a.tools.EffectOf(e.ToolName)
		}
		switch status, _ := e.Details["status"].(string); {
		case status == tool.StatusSkipped:
		case e.IsError:
			r.failure, failed = failureOf(e), call
			r.acted = r.acted || effect != tool.ReadOnly && !r.failure.Blocked
		case failed.Name == e.ToolName && (effect == tool.ReadOnly || string(failed.Arguments) == string(call.Arguments)):
			r.failure = nil
			r.acted = r.acted || effect != tool.ReadOnly
		default:
			r.acted = r.acted || effect != tool.ReadOnly
		}
		switch {
		case e.Verbose == "", e.Verbose == "full" && r.tell(inFull(e, call)), r.tell(inShort(e, call)):
		default:
			r.untold++
		}
	}
	if r.untold > 0 {
		r.summaries = append(r.summaries, fmt.Sprintf("… and %d more tool calls.", r.untold))
	}
	return r
}

// tell adds a summary where there is room for it.
func (r *report) tell(text string) bool {
	n := protocol.EncodedLen(text)
	if r.size+n > maxSummaries {
		return false
	}
	r.summaries, r.size = append(r.summaries, text), r.size+n
	return true
}

func failureOf(e *transcript.Entry) *reply.ToolFailure {
	f := &reply.ToolFailure{
		Label: e.ToolName, Blocked: e.Details["status"] == tool.StatusBlocked,
		Error: tool.ErrorLine(tool.Result{Content: e.Content, IsError: true}),
	}
	if n, ok := number(e.Details["exitCode"]); ok {
		exit := int(n)
		f.ExitCode = &exit
	}
	if over, _ := e.Details["timedOut"].(bool); over {
		ms, _ := number(e.Details["durationMs"])
		f.TimedOut = max(time.Duration(ms)*time.Millisecond, time.Second)
	}
	return f
}

// number is a number of details: as a tool gave it, or as JSON gave it back.
func number(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	}
	return 0, false
}

// signs stand before the names of tools.
var signs = map[string]string{"exec": "🛠️", "read": "📖", "write": "✍️", "ls": "📂"}

// inShort tells people of a call: its name and what it was about, in one line, never a
// command's text.
func inShort(e *transcript.Entry, call model.Block) string {
	sign, known := signs[e.ToolName]
	if !known {
		sign = "🧩"
	}
	line := sign + " " + e.ToolName
	var args map[string]any
	_ = json.Unmarshal(tool.ArgsForEvent(call.Arguments), &args) // of arguments that are no object there is nothing to name
	if path, _ := args["path"].(string); path != "" {
		line += ": " + strings.Map(printable, path)
	}
	return line
}

func printable(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

// inFull tells also the call's arguments and what came of it.
func inFull(e *transcript.Entry, call model.Block) string {
	var out []string
	for _, b := range tool.ForEvent(tool.Result{Content: e.Content}).Content {
		if strings.TrimSpace(b.Text) != "" {
			out = append(out, b.Text)
		}
	}
	if len(out) == 0 {
		out = []string{tool.TextNothing}
	}
	args, text := string(tool.ArgsForEvent(call.Arguments)), strings.Join(out, "\n")
	tick, fence := around("`", args), around("```", text)
	return strings.Join([]string{inShort(e, call), tick + args + tick, fence + "txt", text, fence}, "\n")
}

// around is a mark that does not stand in a text: ticks, and more of them.
func around(ticks, text string) string {
	for strings.Contains(text, ticks) {
		ticks += "`"
	}
	return ticks
}
