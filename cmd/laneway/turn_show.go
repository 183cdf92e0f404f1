package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"laneway/shared/client"
	"laneway/shared/protocol"
)

// showEvents shows what of the run's events a person wants to see.
func (t *turn) showEvents() {
	for _, e := range t.events.take() {
		var p protocol.AgentEvent
		if e.Name != protocol.EventAgent || json.Unmarshal(e.Payload, &p) != nil || p.RunID != t.params.IdempotencyKey {
			continue
		}
		switch p.Stream {
		case protocol.StreamAssistant:
			var text protocol.AssistantText
			if json.Unmarshal(p.Data, &text) == nil && t.show.live {
				t.spin.hide()
				t.show.text(text)
			}
		case protocol.StreamThinking:
			t.doing("thinking")
		case protocol.StreamItem:
			var item protocol.ToolItem
			if json.Unmarshal(p.Data, &item) == nil && item.Kind == "tool" {
				t.doing(tool(item))
			}
		case protocol.StreamRunStatus:
			var s retrying
			if json.Unmarshal(p.Data, &s) == nil && s.Attempt > 0 {
				t.doing(fmt.Sprintf("%s: asking again, attempt %d of %d", strings.ReplaceAll(s.Reason, "_", " "), s.Attempt, s.MaxAttempts))
			}
		case protocol.StreamLifecycle:
			var l protocol.Lifecycle
			if json.Unmarshal(p.Data, &l) == nil && l.Phase == protocol.LifecycleModel && l.Model != "" {
				t.doing("asking " + l.Model)
			}
		}
	}
}

// retrying is what a run tells of a model call that is made again.
type retrying struct {
	Reason      string `json:"reason"`
	Attempt     int    `json:"attempt"`
	MaxAttempts int    `json:"maxAttempts"`
}

// doing shows what is going on, below what was written so far.
func (t *turn) doing(what string) {
	t.show.breakLine()
	t.spin.say(what)
}

func tool(item protocol.ToolItem) string {
	if item.Phase == "end" {
		return "thinking"
	}
	if item.Title != "" {
		return item.Title
	}
	return item.Name
}

// finish prints the last reply and says how the run ended.
func (t *turn) finish(r reply) error {
	var refused *client.CallError
	final := protocol.Final{}
	switch {
	case errors.As(r.err, &refused):
		// A run that broke has a payload beside the error.
		_ = json.Unmarshal(refused.Payload, &final) // none: the zero value
		t.show.end()
		return t.failed(final, &runError{runID: t.runID(), text: refused.Err.Message, err: refused})
	case r.err != nil:
		t.show.end()
		return t.lost(r.err)
	}
	if err := json.Unmarshal(r.raw, &final); err != nil {
		return fmt.Errorf("the final reply is not what was expected: %w", err)
	}
	if t.json {
		return t.printJSON(r.raw, final)
	}
	switch final.Status {
	case protocol.StatusOK:
		t.show.final(final)
		return nil
	case protocol.StatusInFlight:
		return t.failed(final, &runError{runID: t.runID(), text: fmt.Sprintf("agent run %s is already in flight", t.runID())})
	case "":
		if !t.show.final(final) {
			fmt.Fprintln(t.a.stderr, "No reply from agent.")
		}
		return nil
	}
	return t.failed(final, &runError{runID: t.runID(), text: "the run ended with " + outcome(final)})
}

// outcome is the end of a run that is no success, for a person.
func outcome(f protocol.Final) string {
	s := f.Status
	if f.Summary != "" && f.Summary != f.Status {
		s += ": " + f.Summary
	}
	if f.StopReason != "" {
		s += " (" + f.StopReason + ")"
	}
	return s
}

// failed prints what a run that failed has to show, and returns why it failed.
func (t *turn) failed(final protocol.Final, err *runError) error {
	if !t.json {
		t.show.final(final)
	}
	return err
}

// lost says what is known when the reply did not come.
func (t *turn) lost(err error) error {
	if t.accepted == nil {
		return &runError{text: err.Error(), err: err}
	}
	run := t.accepted.RunID
	return &runError{runID: run, err: err, text: fmt.Sprintf(`%v; run %s was accepted and may go on: "laneway wait %s" tells its end`, err, run, run)}
}

func (t *turn) runID() string {
	if t.accepted != nil {
		return t.accepted.RunID
	}
	return ""
}

// answer prints the text of a run so that each piece appears once: on a terminal as
// it comes, else at the end.
type answer struct {
	out  io.Writer
	live bool

	item  string   // of the message that is being shown
	shown string   // of it
	all   []string // messages that were shown whole
	open  bool     // the cursor is behind a text
}

// text shows what is new of a message.
func (s *answer) text(e protocol.AssistantText) {
	if e.ItemID != s.item && s.shown != "" {
		s.end()
		fmt.Fprintln(s.out)
	}
	s.item = e.ItemID
	rest, continues := strings.CutPrefix(e.Text, s.shown)
	if !continues { // it was replaced by another text
		s.breakLine()
		rest = e.Text
	}
	s.shown = e.Text
	if rest != "" {
		fmt.Fprint(s.out, rest)
		s.open = true
	}
}

// end closes the message that is being shown.
func (s *answer) end() {
	if s.shown != "" {
		s.all = append(s.all, s.shown)
		s.shown = ""
	}
	s.breakLine()
}

// breakLine ends the line that is being written; its message may go on below.
func (s *answer) breakLine() {
	if s.open {
		fmt.Fprintln(s.out)
		s.open = false
	}
}

// final prints what of the reply has not been shown, and says if there is a reply.
func (s *answer) final(f protocol.Final) bool {
	if f.Result == nil {
		s.end()
		return false
	}
	var texts, attachments []string
	for _, p := range f.Result.Payloads {
		if text := strings.TrimRight(p.Text, "\n"); text != "" {
			texts = append(texts, text)
		}
		urls := p.MediaURLs
		if p.MediaURL != nil && *p.MediaURL != "" && len(urls) == 0 {
			urls = []string{*p.MediaURL}
		}
		for _, u := range urls {
			attachments = append(attachments, "Attachment: "+u)
		}
	}
	reply := strings.Join(texts, "\n\n")
	if rest, continues := strings.CutPrefix(reply, s.shown); continues && s.shown != "" && rest != "" {
		fmt.Fprint(s.out, rest) // the last delta had not everything
		s.shown, s.open = reply, true
	}
	for _, text := range texts { // likewise, behind what the gateway itself says
		if rest, continues := strings.CutPrefix(text, s.shown); continues && s.shown != "" && rest != "" {
			fmt.Fprint(s.out, rest)
			s.shown, s.open = text, true
		}
	}
	s.end()
	if missing := s.missing(texts); reply != "" && missing != "" && !s.has(reply) {
		fmt.Fprintln(s.out, missing)
	}
	for _, line := range attachments {
		fmt.Fprintln(s.out, line)
	}
	return reply != "" || len(attachments) > 0
}

// missing is what of a reply was not shown.
func (s *answer) missing(texts []string) string {
	var missing []string
	for _, text := range texts {
		if !slices.ContainsFunc(s.all, func(shown string) bool { return strings.TrimSpace(shown) == strings.TrimSpace(text) }) {
			missing = append(missing, text)
		}
	}
	return strings.Join(missing, "\n\n")
}

// has says whether a reply was shown: as the last message, or as all of them.
func (s *answer) has(reply string) bool {
	if len(s.all) == 0 {
		return false
	}
	same := func(shown string) bool { return strings.TrimSpace(shown) == strings.TrimSpace(reply) }
	return same(s.all[len(s.all)-1]) || same(strings.Join(s.all, "\n\n"))
}
