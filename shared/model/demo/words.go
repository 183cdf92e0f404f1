package demo

import (
	"strings"
	"unicode"

	"laneway/shared/model"
)

// wish is a tool that a message makes the demo call.
type wish struct {
	tool, args string
	words      []string // any of them, as a whole word, in lower case
}

// all is in the order in which the calls are made.
var all = []wish{
	{"session_status", `{}`, []string{"time", "date", "clock", "today", "day", "status"}},
	{"ls", `{"path":"."}`, []string{"folder", "directory", "files", "file", "dir", "ls", "workspace"}},
}

// wishes gives what a message asks for.
func wishes(text string) []wish {
	heard := make(map[string]bool)
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		heard[w] = true
	}
	var out []wish
	for _, w := range all {
		for _, word := range w.words {
			if heard[word] {
				out = append(out, w)
				break
			}
		}
	}
	return out
}

// The report quotes so many lines, each so long: it is an answer, not a dump.
const (
	maxLines = 20
	maxLine  = 200
)

// report tells what the tools said.
func report(results []model.Message) string {
	var sb strings.Builder
	for i, m := range results {
		if i > 0 {
			sb.WriteString("\n\n")
		}
		lines := lines(m)
		switch {
		case m.IsError:
			sb.WriteString("The tool " + m.ToolName + " failed:")
		case m.ToolName == "ls":
			sb.WriteString("In the folder there is:")
		case m.ToolName == "session_status":
			sb.WriteString("The session says:")
			lines = aboutTime(lines)
		default:
			sb.WriteString("The tool " + m.ToolName + " says:")
		}
		if len(lines) == 0 {
			sb.WriteString(" nothing.")
		}
		for n, l := range lines {
			if n == maxLines {
				sb.WriteString("\n… and more")
				break
			}
			sb.WriteString("\n" + short(l, maxLine))
		}
	}
	return sb.String()
}

// aboutTime keeps the lines that tell the time, or all if none does.
func aboutTime(lines []string) []string {
	var out []string
	for _, l := range lines {
		low := strings.ToLower(l)
		if strings.Contains(low, "time") || strings.Contains(low, "date") {
			out = append(out, l)
		}
	}
	if len(out) == 0 {
		return lines
	}
	return out
}

func lines(m model.Message) []string {
	var out []string
	for l := range strings.Lines(textOf(m)) {
		if l = strings.TrimRightFunc(l, unicode.IsSpace); l != "" {
			out = append(out, l)
		}
	}
	return out
}

func textOf(m model.Message) string {
	var parts []string
	for _, b := range m.Content {
		if b.Type == model.Text && b.Text != "" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// short cuts s after n characters.
func short(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}
