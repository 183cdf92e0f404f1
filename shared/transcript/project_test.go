package transcript_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"laneway/shared/model"
	"laneway/shared/transcript"
)

// rows builds transcripts.
type rows []transcript.Entry

func (r *rows) add(e transcript.Entry) {
	e.Seq = int64(len(*r)) + 1
	if e.Type == "" {
		e.Type = transcript.Message
	}
	*r = append(*r, e)
}

func (r *rows) user(s string) { r.add(transcript.Entry{Role: model.User, Content: textBlocks(s)}) }

// calls is an assistant message that asks for tools.
func (r *rows) calls(stop string, ids ...string) {
	e := transcript.Entry{Role: model.Assistant, StopReason: stop, Content: textBlocks("on it")}
	for _, id := range ids {
		e.Content = append(e.Content, model.Block{Type: model.ToolCall, ID: id, Name: "read", Arguments: []byte("{}")})
	}
	r.add(e)
}

func (r *rows) result(id, s string) {
	r.add(transcript.Entry{Role: model.ToolResult, ToolCallID: id, ToolName: "read", Content: textBlocks(s)})
}

func textBlocks(s string) []model.Block { return []model.Block{{Type: model.Text, Text: s}} }

// said is a conversation in short.
func said(messages []model.Message) []string {
	var out []string
	for _, m := range messages {
		s := string(m.Role) + ":"
		for _, b := range m.Content {
			switch b.Type {
			case model.Text:
				s += " " + b.Text
			case model.ToolCall:
				s += " <" + b.ID + ">"
			case model.Thinking, model.Image: // none in these tests
			}
		}
		if m.Role == model.ToolResult {
			s += " for " + m.ToolCallID
			if m.IsError {
				s += " (error)"
			}
		}
		out = append(out, s)
	}
	return out
}

func TestF23_Projection(t *testing.T) {
	t.Parallel()
	missing := "toolResult: " + transcript.MissingResult
	for name, c := range map[string]struct {
		build func(r *rows)
		want  []string
	}{
		"nothing": {func(*rows) {}, nil},
		"results stand behind their calls, in call order": {
			func(r *rows) { r.user("hi"); r.calls("toolUse", "a", "b"); r.result("b", "B"); r.result("a", "A") },
			[]string{"user: hi", "assistant: on it <a> <b>", "toolResult: A for a", "toolResult: B for b"},
		},
		"a crash before the result was recorded": {
			func(r *rows) { r.user("hi"); r.calls("toolUse", "a"); r.user("next") },
			[]string{"user: hi", "assistant: on it <a>", missing + " for a (error)", "user: next"},
		},
		"a result that came late": {
			func(r *rows) { r.calls("toolUse", "a"); r.user("next"); r.result("a", "A") },
			[]string{"assistant: on it <a>", "toolResult: A for a", "user: next"},
		},
		"a result twice": {
			func(r *rows) { r.calls("toolUse", "a"); r.result("a", "A"); r.result("a", "again") },
			[]string{"assistant: on it <a>", "toolResult: A for a"},
		},
		"a result without a call": {
			func(r *rows) { r.user("hi"); r.result("x", "X") },
			[]string{"user: hi"},
		},
		"a model that repeats its ids": {
			func(r *rows) {
				r.calls("toolUse", "a")
				r.result("a", "1")
				r.calls("toolUse", "a")
				r.result("a", "2")
			},
			[]string{"assistant: on it <a>", "toolResult: 1 for a", "assistant: on it <a_2>", "toolResult: 2 for a_2"},
		},
		"and crashed the first time": {
			func(r *rows) { r.calls("toolUse", "a"); r.calls("toolUse", "a"); r.result("a", "2") },
			[]string{"assistant: on it <a>", missing + " for a (error)", "assistant: on it <a_2>", "toolResult: 2 for a_2"},
		},
		"an id that is like a made one": {
			func(r *rows) { r.calls("toolUse", "a_2", "a"); r.result("a", "1"); r.calls("toolUse", "a") },
			[]string{"assistant: on it <a_2> <a>", missing + " for a_2 (error)", "toolResult: 1 for a", "assistant: on it <a_3>", missing + " for a_3 (error)"},
		},
		"a message with an id twice": {
			func(r *rows) { r.calls("toolUse", "a", "a"); r.result("a", "1"); r.result("a", "2") },
			[]string{"assistant: on it <a> <a_2>", "toolResult: 1 for a", "toolResult: 1 for a_2"},
		},
		"calls of a message that was cut are not replayed": {
			func(r *rows) { r.user("hi"); r.calls("aborted", "a"); r.result("a", "A"); r.user("next") },
			[]string{"user: hi", "assistant: " + transcript.AbortedMarker, "user: next"},
		},
		"and take no result from an earlier call of that id": {
			func(r *rows) { r.calls("toolUse", "a"); r.calls("error", "a"); r.result("a", "A") },
			[]string{"assistant: on it <a>", "toolResult: A for a", "assistant: " + transcript.AbortedMarker},
		},
		"a partial reply that was kept": {
			func(r *rows) {
				r.add(transcript.Entry{Role: model.Assistant, StopReason: "stop", Content: textBlocks("par"), Abort: &transcript.Abort{Aborted: true}})
			},
			[]string{"assistant: " + transcript.AbortedMarker},
		},
		"an assistant without content is left out": {
			func(r *rows) { r.user("hi"); r.add(transcript.Entry{Role: model.Assistant, StopReason: "stop"}) },
			[]string{"user: hi"},
		},
		"what lies before a reset is gone": {
			func(r *rows) {
				r.user("old")
				r.calls("toolUse", "a")
				r.add(transcript.Entry{Type: transcript.Reset})
				r.result("a", "A")
				r.user("new")
			},
			[]string{"user: new"},
		},
		"a compaction stands for what it dropped": {
			func(r *rows) {
				r.user("old")
				r.user("kept")
				r.add(transcript.Entry{Type: transcript.Compaction, Summary: "S", FirstKept: 2})
				r.user("new")
			},
			[]string{"user: Summary of the conversation so far:\nS", "user: kept", "user: new"},
		},
		"a result whose call was compacted away": {
			func(r *rows) {
				r.calls("toolUse", "a")
				r.result("a", "A")
				r.add(transcript.Entry{Type: transcript.Compaction, Summary: "S", FirstKept: 2})
				r.user("new")
			},
			[]string{"user: Summary of the conversation so far:\nS", "user: new"},
		},
		"custom rows are not for the model, custom messages are": {
			func(r *rows) {
				r.add(transcript.Entry{Type: transcript.Custom, Content: textBlocks("no")})
				r.add(transcript.Entry{Type: transcript.CustomMessage, Content: textBlocks("yes")})
			},
			[]string{"user: yes"},
		},
	} {
		var r rows
		c.build(&r)
		if diff := cmp.Diff(c.want, said(transcript.Project(r))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// valid finds what a provider would refuse.
func valid(messages []model.Message) error {
	var open []string
	for i, m := range messages {
		switch {
		case m.Role == model.ToolResult:
			if len(open) == 0 || open[0] != m.ToolCallID {
				return fmt.Errorf("message %d is a result for %q, expected for %q", i, m.ToolCallID, open)
			}
			open = open[1:]
		case len(open) > 0:
			return fmt.Errorf("message %d comes before the results of %q", i, open)
		}
		if len(m.Content) == 0 {
			return fmt.Errorf("message %d has no content", i)
		}
		if m.Role != model.Assistant {
			continue
		}
		if m.StopReason == "aborted" || m.StopReason == "error" {
			return fmt.Errorf("message %d was cut and is replayed", i)
		}
		for _, b := range m.Content {
			if b.Type == model.ToolCall {
				open = append(open, b.ID)
			}
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("no results for %q at the end", open)
	}
	return nil
}

// transcripts are what crashes, aborts, resets and compactions leave behind, in any
// order that rows can have.
func transcripts(t *rapid.T) rows {
	var r rows
	id := rapid.SampledFrom([]string{"a", "b", "c", "d"}) // few, so that they repeat
	for range rapid.IntRange(0, 25).Draw(t, "rows") {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1:
			r.user("u")
		case 2, 3, 4:
			ids := rapid.SliceOfNDistinct(id, 0, 3, rapid.ID).Draw(t, "calls")
			r.calls(rapid.SampledFrom([]string{"toolUse", "toolUse", "stop", "aborted", "error"}).Draw(t, "stop"), ids...)
		case 5, 6, 7:
			r.result(id.Draw(t, "result"), "R")
		case 8:
			r.add(transcript.Entry{Type: transcript.Compaction, Summary: "S", FirstKept: int64(rapid.IntRange(0, len(r)+1).Draw(t, "kept"))})
		case 9:
			r.add(transcript.Entry{Type: rapid.SampledFrom([]transcript.Type{transcript.Reset, transcript.Custom, transcript.CustomMessage}).Draw(t, "type"), Content: textBlocks("c")})
		}
	}
	return r
}

// Whatever crash, abort or compaction left behind: a provider takes it on first try.
func TestF23_EveryTranscriptMakesAConversationThatAProviderTakes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := transcripts(t)
		before := append(rows(nil), r...)
		got := transcript.Project(r)
		if err := valid(got); err != nil {
			t.Fatalf("%v\nrows %+v\ngot %q", err, r, said(got))
		}
		if diff := cmp.Diff(before, r); diff != "" {
			t.Fatalf("the rows were changed (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(got, transcript.Project(r)); diff != "" {
			t.Fatalf("another conversation the second time:\n%s", diff)
		}
	})
}

// Repair is written once: with results for the open calls stored behind the
// transcript there is nothing left to repair, and what a model sees stays the same
// when more is said.
func TestF23_RepairIsStoredOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := transcripts(t)
		for _, b := range transcript.OpenCalls(r) {
			r.result(b.ID, "closed")
		}
		if open := transcript.OpenCalls(r); len(open) > 0 {
			t.Fatalf("still open: %+v", open)
		}
		first := transcript.Project(r)
		r.user("next")
		second := transcript.Project(r)
		if len(second) != len(first)+1 {
			t.Fatalf("%d messages became %d", len(first), len(second))
		}
		if diff := cmp.Diff(first, second[:len(first)]); diff != "" {
			t.Fatalf("the past changed (-before +after):\n%s", diff)
		}
	})
}

func TestOpenCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		build func(r *rows)
		want  string
	}{
		"none":                     {func(r *rows) { r.user("hi") }, "[]"},
		"in call order":            {func(r *rows) { r.calls("toolUse", "b", "a") }, "[b a]"},
		"some have results":        {func(r *rows) { r.calls("toolUse", "a", "b", "c"); r.result("b", "B") }, "[a c]"},
		"a user row came between":  {func(r *rows) { r.calls("toolUse", "a"); r.user("next") }, "[a]"},
		"of the last message only": {func(r *rows) { r.calls("toolUse", "a"); r.calls("stop") }, "[]"},
		"a result before its call": {func(r *rows) { r.result("a", "A"); r.calls("toolUse", "a") }, "[a]"},
		"a message that was cut":   {func(r *rows) { r.calls("aborted", "a") }, "[]"},
		"a partial that was kept": {func(r *rows) {
			r.add(transcript.Entry{
				Role: model.Assistant, StopReason: "stop", Abort: &transcript.Abort{Aborted: true},
				Content: []model.Block{{Type: model.ToolCall, ID: "a"}},
			})
		}, "[]"},
	} {
		var r rows
		c.build(&r)
		ids := []string{}
		for _, b := range transcript.OpenCalls(r) {
			ids = append(ids, b.ID)
		}
		if got := fmt.Sprint(ids); got != c.want {
			t.Errorf("%s: open %s, want %s", name, got, c.want)
		}
	}
}
