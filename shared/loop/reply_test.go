package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/retry"
	"laneway/shared/queue"
	"laneway/shared/reply"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table/faulty"
	"laneway/shared/tool"
	"laneway/shared/wiring"
)

// payloads are the texts of the second reply of agent, in order.
func payloads(f map[string]any) []string {
	var out []string
	list, _ := get(f, "payload.result.payloads").([]any)
	for _, p := range list {
		m, _ := p.(map[string]any)
		s, _ := m["text"].(string)
		out = append(out, s)
	}
	return out
}

// get follows a path of names through objects.
func get(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// impatient is a process that hardly waits between two calls of a model.
func impatient(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) {
	rc.Retry = retry.Config{Base: time.Millisecond}
}

// afterTools answers the first call with tools and the next one with a text.
func (w *world) afterTools(text string, calls ...model.Block) {
	w.model.by(func(r model.Request) answerFunc {
		if r.Messages[len(r.Messages)-1].Role == model.User {
			return callTools(calls...)
		}
		return say(text)
	})
}

// TestReply_WhatARunSaysAtItsEnd (spec: loop 3.4, 3.5): the answer; where there is none,
// what tools did not do; with /verbose a line, or more, of each call before it.
func TestReply_WhatARunSaysAtItsEnd(t *testing.T) {
	t.Parallel()
	fails := func(details map[string]any) func(context.Context, tool.Call) (tool.Result, error) {
		return func(context.Context, tool.Call) (tool.Result, error) {
			r := tool.ErrorResult("no such thing\nand more")
			r.Details = details
			return r, nil
		}
	}
	sends := func(context.Context, tool.Call) (tool.Result, error) {
		r := tool.TextResult("sent")
		r.Sent = []reply.Sent{{Text: "The report is written."}}
		return r, nil
	}
	read := model.Block{ID: "c1", Name: "read", Arguments: json.RawMessage(`{"path":"notes.txt"}`)}
	act := model.Block{ID: "c2", Name: "act", Arguments: json.RawMessage(`{"n":1}`)}
	for name, c := range map[string]struct {
		answer string
		calls  []model.Block
		run    func(context.Context, tool.Call) (tool.Result, error) // of act
		change func(*run.Status)
		status string
		want   []string
	}{
		"off":                       {answer: "fine", calls: []model.Block{read}, status: "ok", want: []string{"fine"}},
		"verbose on":                {answer: "fine", calls: []model.Block{read, act}, change: verbose("on"), status: "ok", want: []string{"📖 read: notes.txt", "🧩 act", "fine"}},
		"verbose full":              {answer: "fine", calls: []model.Block{act}, change: verbose("full"), status: "ok", want: []string{"🧩 act\n`{\"n\":1}`\n```txt\ndone c2\n```", "fine"}},
		"nothing after a reader":    {answer: " ", calls: []model.Block{read}, status: "error", want: []string{reply.TextIncomplete}},
		"nothing after an act":      {answer: " ", calls: []model.Block{act}, status: "error", want: []string{reply.TextSideEffects}},
		"nothing after a failure":   {answer: " ", calls: []model.Block{act}, run: fails(map[string]any{"exitCode": 3}), status: "error", want: []string{"⚠️ act failed (exit 3)"}},
		"the same, in full":         {answer: " ", calls: []model.Block{act}, run: fails(nil), change: verbose("full"), status: "error", want: []string{"🧩 act\n`{\"n\":1}`\n```txt\nno such thing\nand more\n```", "⚠️ act failed: no such thing"}},
		"nothing after a timeout":   {answer: " ", calls: []model.Block{act}, run: fails(map[string]any{"timedOut": true, "durationMs": 90_000}), status: "error", want: []string{"⚠️ act timed out after 90s"}},
		"a tool has said it":        {answer: " ", calls: []model.Block{act}, run: sends, status: "ok", want: nil},
		"it has, and is told of":    {answer: " ", calls: []model.Block{act}, run: sends, change: verbose("on"), status: "ok", want: []string{"🧩 act"}},
		"silence, told of":          {answer: "NO_REPLY", calls: []model.Block{act}, change: verbose("on"), status: "ok", want: []string{"🧩 act"}},
		"silence after a failure":   {answer: "NO_REPLY", calls: []model.Block{act}, run: fails(nil), status: "ok", want: nil},
		"the same, scheduled":       {answer: "NO_REPLY", calls: []model.Block{act}, run: fails(nil), change: scheduled, status: "ok", want: []string{"⚠️ act failed"}},
		"an answer after a failure": {answer: "never mind", calls: []model.Block{act}, run: fails(nil), status: "ok", want: []string{"never mind"}},
		"a heartbeat":               {answer: "HEARTBEAT_OK all quiet", change: heartbeat, status: "ok", want: nil},
		"a heartbeat's news":        {answer: "The build is red.", change: heartbeat, status: "ok", want: []string{"The build is red."}},
		"like a heartbeat":          {answer: "HEARTBEAT_OK all quiet", status: "ok", want: []string{"all quiet"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tools := newTool("act", tool.Unsafe)
			tools.run = c.run
			w := newWorld(t, newTool("read", tool.ReadOnly), tools)
			if len(c.calls) == 0 {
				w.model.on(say(c.answer))
			} else {
				w.afterTools(c.answer, c.calls...)
			}
			cl := w.connect()
			change := func(*run.Status) {}
			if c.change != nil {
				change = c.change
			}
			w.accept(cl, "r1", "hi", change)
			w.process(nil, impatient).serve()
			f := w.reply(cl, "r1")
			if got := payloads(f); str(f, "payload.status") != c.status || !reflect.DeepEqual(got, c.want) {
				t.Errorf("status %s, payloads %q; want %s, %q", str(f, "payload.status"), got, c.status, c.want)
			}
			// Who waits, a job, or a hook gets one text, from the record: without what is told
			// of tools.
			said := strings.Join(slices.DeleteFunc(slices.Clone(c.want), func(s string) bool { return strings.HasPrefix(s, "🧩") || strings.HasPrefix(s, "📖") }), "\n\n")
			if c.status != "ok" {
				said = ""
			}
			if got := w.status("r1").Outcome.Text; got != said {
				t.Errorf("the record says %q, want %q", got, said)
			}
		})
	}
}

func verbose(level string) func(*run.Status) {
	return func(st *run.Status) { st.Input.Verbose = level }
}

func scheduled(st *run.Status) { st.Lane = string(queue.Cron) }
func heartbeat(st *run.Status) { st.Input.RunKind = "heartbeat" }

// TestReply_VerboseChangesInMidRun: what is set while a tool runs holds for later calls,
// not for that one.
func TestReply_VerboseChangesInMidRun(t *testing.T) {
	t.Parallel()
	act := newTool("act", tool.Unsafe)
	w := newWorld(t, act)
	act.run = func(ctx context.Context, call tool.Call) (tool.Result, error) {
		_, err := session.UpdateEntry(ctx, w.store, session.Ref{Tenant: session.DefaultTenant, Key: key}, func(e *session.Entry) error {
			e.VerboseLevel = "on"
			return nil
		})
		return tool.TextResult("done"), err
	}
	steps := []answerFunc{callTools(model.Block{ID: "a", Name: "act", Arguments: json.RawMessage(`{}`)}), callTools(model.Block{ID: "b", Name: "act", Arguments: json.RawMessage(`{}`)}), say("fine")}
	w.model.on(steps...)
	c := w.connect()
	w.accept(c, "r1", "hi")
	w.process(nil).serve()
	if got := payloads(w.reply(c, "r1")); !reflect.DeepEqual(got, []string{"🧩 act", "fine"}) {
		t.Errorf("payloads %q", got)
	}
}

// TestReply_WhatAToolSentIsNotSaidAgain (spec: loop 3.3): on no stream and in no payload;
// another answer is shown whole; a call that failed has sent nothing; the next attempt
// knows what the one before it sent.
func TestReply_WhatAToolSentIsNotSaidAgain(t *testing.T) {
	t.Parallel()
	const sent = "The report is written and stands in report.md."
	for name, c := range map[string]struct {
		answer []string
		fails  bool
		want   []string
	}{
		"a repetition":      {[]string{"The report is ", "written and stands in report.md."}, false, nil},
		"something else":    {[]string{"The report is ", "late."}, false, []string{"The report is late."}},
		"it was never sent": {[]string{sent}, true, []string{sent}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			message := newTool("message", tool.Unsafe)
			message.run = func(context.Context, tool.Call) (tool.Result, error) {
				r := tool.TextResult("sent")
				r.Sent = []reply.Sent{{Text: sent}}
				if c.fails {
					return r, errors.New("no route")
				}
				return r, nil
			}
			w := newWorld(t, message)
			w.model.on(callTools(model.Block{ID: "m", Name: "message", Arguments: json.RawMessage(`{}`)}), say(c.answer...))
			cl := w.connect()
			w.accept(cl, "r1", "hi")
			dying := w.process(func(c faulty.Call) faulty.Fault {
				if isTerminal(c.Ops) {
					return faulty.DieBefore
				}
				return faulty.None
			})
			if dying.start().wait() == nil {
				t.Fatal("a dead process acknowledged")
			}
			w.clock.Advance(lost)
			w.box.back(letter{lane: "main", body: wakeBody, due: w.clock.Now()})
			w.process(nil).serve()
			f := w.reply(cl, "r1")
			if got := payloads(f); str(f, "payload.status") != "ok" || !reflect.DeepEqual(got, c.want) {
				t.Errorf("status %s, payloads %q, want %q", str(f, "payload.status"), got, c.want)
			}
			if n := message.count(); n != 1 {
				t.Errorf("sent %d times", n)
			}
			if got, want := (&story{world: w, c: cl}).shown("r1"), strings.Join(c.want, ""); got != want {
				t.Errorf("shown %q, want %q", got, want)
			}
		})
	}
}

// TestReply_AHeartbeatIsSeenOnlyWithNews (spec: loop 1.8): of one that has found nothing
// there is neither text nor a chat event, and of none are tools told.
func TestReply_AHeartbeatIsSeenOnlyWithNews(t *testing.T) {
	t.Parallel()
	for answer, seen := range map[string]string{"HEARTBEAT_OK all quiet": "", "The build is red.": "The build is red."} {
		w := newWorld(t, newTool("act", tool.Unsafe))
		w.afterTools(answer, model.Block{ID: "a", Name: "act", Arguments: json.RawMessage(`{}`)})
		c := w.connect("tool-events")
		w.accept(c, "r1", "hi", heartbeat)
		w.process(nil).serve()
		if got := payloads(w.reply(c, "r1")); strings.Join(got, "") != seen {
			t.Errorf("%q: payloads %q", answer, got)
		}
		var texts []string
		for _, f := range c.all(func(f map[string]any) bool { return f["type"] == "event" }) {
			switch stream := str(f, "payload.stream"); {
			case stream == "tool" || stream == "item":
				t.Errorf("%q: a tool is told of: %v", answer, f)
			case stream == "assistant":
				texts = append(texts, str(f, "payload.data.delta"))
			case f["event"] == "chat" && seen == "":
				t.Errorf("%q: %v", answer, f)
			}
		}
		if strings.Join(texts, "") != seen {
			t.Errorf("%q: shown %q", answer, texts)
		}
	}
}

// TestReply_ThinkingThatNeverEnds (spec: loop 2.5): a tag that holds the whole message is
// taken off, and the rest is the answer; beside calls, in a message that was cut, and
// behind a block that was closed it is what was thought.
func TestReply_ThinkingThatNeverEnds(t *testing.T) {
	t.Parallel()
	act := model.Block{Type: model.ToolCall, ID: "a", Name: "act", Arguments: json.RawMessage(`{}`)}
	both := func(text answerFunc, call model.Block) answerFunc {
		return func(ctx context.Context, r model.Request, yield func(model.Part, error) bool) {
			text(ctx, r, func(p model.Part, err error) bool {
				if p.Done != nil && !yield(model.Part{ToolCall: &call}, nil) {
					return false
				}
				return yield(p, err)
			})
		}
	}
	for name, c := range map[string]struct {
		answer []answerFunc
		want   []string
	}{
		"a whole message":         {[]answerFunc{say("<Think> It ", "is four.")}, []string{"It is four."}},
		"beside a call":           {[]answerFunc{both(say("<think>I look"), act), say("It is four.")}, []string{"It is four."}},
		"behind a block that was": {[]answerFunc{say("<think>Two</think><think>and two")}, []string{reply.TextIncomplete}},
		"without a text":          {[]answerFunc{say("<think>")}, []string{reply.TextIncomplete}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, newTool("act", tool.Unsafe))
			w.model.on(c.answer...)
			cl := w.connect()
			w.accept(cl, "r1", "hi")
			w.process(nil, impatient).serve()
			got := payloads(w.reply(cl, "r1"))
			if !slices.Equal(got, c.want) {
				t.Errorf("payloads %q", got)
			}
			if rows := w.rows(); c.want[0] != reply.TextIncomplete && rows[len(rows)-1].Text() != c.want[0] {
				t.Errorf("the last row is %+v", rows[len(rows)-1].Content)
			}
		})
	}
}

// TestReply_ThinkingInTags: models without a channel for it write what they think into the
// text; it is no part of the answer, however the text is split.
func TestReply_ThinkingInTags(t *testing.T) {
	t.Parallel()
	for _, deltas := range [][]string{
		{"<think>Two and two", " is four.</think>\n\nFour."},
		{"<th", "ink>Two and two is four.</th", "ink>Four."},
	} {
		w := newWorld(t)
		w.model.on(say(deltas...))
		c := w.connect()
		w.accept(c, "r1", "hi", func(st *run.Status) { st.Input.Reasoning = "on" })
		w.process(nil).serve()
		got := payloads(w.reply(c, "r1"))
		if len(got) != 2 || got[0] != "Thinking\n\nTwo and two is four." || strings.TrimSpace(got[1]) != "Four." {
			t.Errorf("%q: payloads %q", deltas, got)
		}
		if shown := (&story{world: w, c: c}).shown("r1"); strings.TrimSpace(shown) != "Four." {
			t.Errorf("%q: shown %q", deltas, shown)
		}
		row := w.rows()[1]
		if len(row.Content) != 2 || row.Content[0].Thinking != "Two and two is four." || strings.TrimSpace(row.Text()) != "Four." {
			t.Errorf("%q: row %+v", deltas, row.Content)
		}
	}
}
