package run

import (
	"fmt"
	"slices"
	"strings"
)

// overflowLine bounds a line of a summary in characters, its ellipsis included.
const overflowLine = 160

// Add takes a dropped message up: one line of its text, of which the newest most are
// kept; all are counted.
func (o *Overflow) Add(v Status, most int) {
	o.Count++
	o.Runs = append(o.Runs, v.Ref.Run)
	o.Lines = append(o.Lines, oneLine(v.Input.Message))
	if n := len(o.Lines) - most; n > 0 {
		o.Lines = o.Lines[n:]
	}
}

// Remove takes a message out that was taken up; false: it is not in it.
func (o *Overflow) Remove(short string) bool {
	i := slices.Index(o.Runs, short)
	if i < 0 {
		return false
	}
	if line := i - (len(o.Runs) - len(o.Lines)); line >= 0 { // else it was elided
		o.Lines = slices.Delete(o.Lines, line, line+1)
	}
	o.Runs = slices.Delete(o.Runs, i, i+1)
	o.Count--
	return true
}

// Text is the message that the summary is to the model (spec: runtime 2.7).
func (o *Overflow) Text() string {
	plural := "s"
	if o.Count == 1 {
		plural = ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[Queue overflow] Dropped %d message%s due to cap.\nSummary:", o.Count, plural)
	for _, l := range o.Lines {
		b.WriteString("\n- " + l)
	}
	return b.String()
}

// oneLine is a text with its white space collapsed, cut to overflowLine characters.
func oneLine(text string) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) <= overflowLine {
		return string(line)
	}
	return string(line[:overflowLine-1]) + "…"
}
