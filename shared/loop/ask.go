package loop

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"laneway/shared/clock"
	"laneway/shared/model"
	"laneway/shared/model/watch"
	"laneway/shared/protocol"
	"laneway/shared/reply"
	"laneway/shared/session"
	"laneway/shared/stream"
	"laneway/shared/timeout"
	"laneway/shared/transcript"
)

// answer is a model's message, whole.
type answer struct {
	blocks  []model.Block
	visible string // what clients were shown of its text
	silent  bool   // the silent token, or what a tool has sent already: nothing is shown
	stop    string
	usage   model.Usage
	ids     model.CallIDs // of the run's calls
}

func (a *answer) calls() []model.Block {
	var out []model.Block
	for _, b := range a.blocks {
		if b.Type == model.ToolCall {
			out = append(out, b)
		}
	}
	return out
}

// ask makes the model call of a step, again where the error is one to recover from on
// the same model, then with another credential, then on another model (spec: runtime
// 7.2). A recovered error leaves nothing behind: text that was shown is replaced.
func (a *attempt) ask(ctx context.Context) (answer, error) {
	cutCall := false
	for {
		req, err := a.request(ctx, cutCall)
		if err != nil {
			return answer{}, err
		}
		ans, err := a.once(ctx, req)
		if err == nil {
			a.retry.Success()
			a.worked(ctx)
			return ans, nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return answer{}, cause
		}
		var cut *cutError
		var me *model.Error
		switch {
		case errors.As(err, &cut):
			me = cut.asModel(a.sel)
		case !errors.As(err, &me):
			return answer{}, err
		}
		a.chk.Route.Failures++
		if a.chk.Route.Failures > a.maxFailures() {
			return answer{}, errTooManyFailures
		}
		wait, again := a.retry.Next(me, strings.TrimSpace(a.shown.String()) != "", a.r.Clock.Now())
		switch {
		case !again && cut != nil && len(cut.ans.calls()) == 0:
			return cut.ans, nil // as far as it came; its end says so
		case !again:
			moved, ferr := a.failover(ctx, me)
			switch {
			case ferr != nil:
				return answer{}, ferr
			case moved:
				continue
			case a.retry.Broken():
				return answer{}, errBreaker
			}
			return answer{}, me
		case cut != nil:
			if cutCall = len(cut.ans.calls()) > 0; a.keep(cut.ans) {
				if err := a.commit(ctx, change{}); err != nil {
					return answer{}, err
				}
			}
		}
		if cut == nil {
			a.takeBack()
		}
		a.tellRetry(me.Class, wait)
		if err := a.pause(ctx, wait); err != nil {
			return answer{}, err
		}
	}
}

// tellRetry says that a call is made again, and how often that may be. Whoever uses chat
// events is told of rate limits, which are what takes long.
func (a *attempt) tellRetry(why model.Class, wait time.Duration) {
	n, of := a.retry.Attempts()+1, a.retry.MaxAttempts()
	a.out.Emit("run_status", map[string]any{
		"phase": "retrying", "message": "The model call is made again.", "reason": string(why),
		"attempt": n, "maxAttempts": of, "retryAttempt": n - 1, "maxRetries": of - 1, "delayMs": wait.Milliseconds(),
	})
	if why == model.RateLimit && a.shown.Len() == 0 {
		a.out.Emit(stream.ChatStream, map[string]any{
			"state": protocol.ChatStateStatus, "phase": "starting_model",
			"retry": map[string]any{"attempt": min(n, 10), "maxAttempts": of, "reason": string(why)},
		})
	}
}

// request is what the model in use is asked.
func (a *attempt) request(ctx context.Context, cutCall bool) (model.Request, error) {
	level := a.thinking()
	a.phase = phaseContext
	in := PromptInput{
		Scope: a.scope, Model: a.sel, Input: a.st.Input, Thinking: level, Tools: a.tools.Specs(), Now: a.r.Clock.Now(),
	}
	system, err := leave(ctx, a, func() (string, error) { return a.r.Agents.Prompt(ctx, in) })
	return model.Request{
		Model: a.sel.Model, System: system, Messages: a.instruct(transcript.Project(a.rows), cutCall), Tools: a.tools.ForModel(),
		MaxOutputTokens: a.sel.MaxTokens, Thinking: level, Reasons: a.sel.Reasons, Fast: a.fast(), SessionKey: a.ref.Hash(),
	}, err
}

// takeBack clears what clients were shown of a message that comes anew.
func (a *attempt) takeBack() {
	if a.shown.Len() > len(a.said0) {
		a.out.Replace(a.said0)
		a.shown.Reset()
		a.shown.WriteString(a.said0)
	}
}

// resumeText shows again what an earlier attempt kept of an answer that goes on.
func (a *attempt) resumeText() {
	if a.said0 = a.continued(); a.said0 == "" || a.shown.Len() > 0 {
		return
	}
	a.begun = true
	a.out.Replace(a.said0)
	a.shown.WriteString(a.said0)
}

// sleepFrom is the shortest wait that a run sleeps through instead of holding an
// invocation, and its place in the lane, for it.
const sleepFrom = time.Minute

// pause waits before a retry, unless the invocation would end meanwhile.
func (a *attempt) pause(ctx context.Context, d time.Duration) error {
	if d >= sleepFrom {
		return &sleepError{a.r.Clock.Now().Add(d)}
	}
	if !a.deadline.IsZero() && a.deadline.Sub(a.r.Clock.Now())-d < a.r.StepNeed {
		return errNoTime
	}
	defer a.h.Working(session.Work{Kind: session.WorkRetry, Limit: d})()
	if err := clock.Sleep(ctx, a.r.Clock, d); err != nil {
		return context.Cause(ctx)
	}
	return a.ready(ctx)
}

// once makes one model call and streams what it gives.
func (a *attempt) once(ctx context.Context, req model.Request) (answer, error) {
	if err := a.h.Fresh(); err != nil {
		return answer{}, err
	}
	a.chk.Asked, a.asking = true, true
	a.asks.Do(func() { close(a.asked) })
	defer func() { a.asking = context.Cause(ctx) != nil }()
	if !a.begun {
		a.out.BeginMessage()
		a.begun = true
	}
	ans := answer{ids: a.callIDs()}
	var raw, unshown strings.Builder
	show := a.show
	if a.heartbeat() { // nobody sees what may be an acknowledgement
		show = func(text string) { unshown.WriteString(text) }
	}
	var filter reply.Filter
	var split reply.ThinkSplitter
	hold := reply.Hold{Sent: a.sent()}
	take := func(text, thought string) {
		if thought != "" {
			a.out.Thinking(thought)
			ans.think(thought)
		}
		raw.WriteString(text)
		show(hold.Push(filter.Push(text)))
	}
	windows := watch.Windows{ProviderTimeout: a.sel.Timeout, RunTimeout: a.runWindow(), AgentTimeout: a.agentTimeout(), Endpoint: a.sel.Endpoint, Cron: scheduled(a.st.Lane)}
	limit, rule := timeout.Silence(windows, a.left())
	defer a.h.Working(session.Work{Kind: session.WorkModel, Limit: limit, Rule: rule})()
	alive := func() { a.h.Progress(session.ProgressStream) }
	for part, err := range watch.Idle(model.WithProgress(ctx, alive), a.r.Clock, windows, a.sel.Provider.Stream, req) {
		if err == nil {
			alive()
		}
		switch {
		case err != nil:
			if errors.Is(err, watch.ErrLeft) {
				a.r.Logger.Warn("a model call was left behind", "session", a.ref.Hash(), "run", a.st.Ref.Run, "provider", a.sel.Name, "model", a.sel.Model)
			}
			return answer{}, err
		case part.Text != "":
			take(split.Push(part.Text))
		case part.Thinking != "":
			a.out.Thinking(part.Thinking)
			ans.think(part.Thinking)
		case part.ThinkingDone != nil:
			ans.signed(*part.ThinkingDone)
		case part.ToolCall != nil:
			take(split.Flush())
			ans.text(&raw)
			ans.call(*part.ToolCall)
		case part.Usage != nil:
			ans.usage = *part.Usage
		case part.Done != nil:
			ans.stop = part.Done.StopReason
		}
	}
	take(split.Flush())
	if all := split.Unclosed(); all != "" && ans.stop != "length" && len(ans.calls()) == 0 && a.shown.Len() == 0 {
		ans.unthink(all) // a tag that holds the whole message is a mistake, and the rest the answer
		take(all, "")
	}
	ans.text(&raw)
	rest, silent := filter.Flush()
	show(hold.Push(rest))
	rest, repeats := hold.Flush()
	show(rest)
	ans.visible, ans.silent = a.shown.String()+unshown.String(), silent || repeats
	if news, acknowledged := reply.Heartbeat(unshown.String(), true); !acknowledged && len(ans.calls()) == 0 {
		a.show(news)
	}
	if len(ans.calls()) == 0 && !ans.silent && strings.TrimSpace(ans.visible) == "" {
		if ans.stop == "refusal" {
			return answer{}, &model.Error{Class: model.Format, Message: "The model refused to answer.", Provider: a.sel.Name, Model: a.sel.Model, Err: model.ErrRefusal}
		}
		return answer{}, &model.Error{Class: model.EmptyResponse, Message: textNoAnswer, Provider: a.sel.Name, Model: a.sel.Model}
	}
	if ans.limited() {
		return answer{}, &cutError{ans}
	}
	return ans, nil
}

// left is what is left of the run's budget; 0: it has no end.
func (a *attempt) left() time.Duration {
	end := a.endOfRun()
	if end.IsZero() {
		return 0
	}
	return max(end.Sub(a.r.Clock.Now()), time.Millisecond)
}

func (a *attempt) show(text string) {
	if text == "" {
		return
	}
	a.shown.WriteString(text)
	a.out.Text(text)
}

// runWindow is the explicit budget of the run; 0: none.
func (a *attempt) runWindow() time.Duration {
	if a.st.Input.TimeoutMs > 0 {
		return time.Duration(a.st.Input.TimeoutMs) * time.Millisecond
	}
	return 0
}

// call adds a tool call, under an id that no other call of the run has: results and
// events are told apart by it.
func (a *answer) call(b model.Block) {
	b.ID = a.ids.Own(b.ID)
	a.blocks = append(a.blocks, b)
}

// callIDs are the ids of the run's calls.
func (a *attempt) callIDs() model.CallIDs {
	ids := model.CallIDs{}
	for i := range a.rows {
		if e := &a.rows[i]; e.RunID == a.st.RunID && e.Role == model.Assistant {
			for _, b := range e.Content {
				if b.Type == model.ToolCall {
					ids.Own(b.ID)
				}
			}
		}
	}
	return ids
}

// text closes the text block that raw has gathered.
func (a *answer) text(raw *strings.Builder) {
	if raw.Len() > 0 {
		a.blocks = append(a.blocks, model.Block{Type: model.Text, Text: raw.String()})
		raw.Reset()
	}
}

func (a *answer) think(s string) {
	if n := len(a.blocks); n > 0 && a.blocks[n-1].Type == model.Thinking && a.blocks[n-1].Signature == "" {
		a.blocks[n-1].Thinking += s
		return
	}
	a.blocks = append(a.blocks, model.Block{Type: model.Thinking, Thinking: s})
}

// unthink takes the end of the thoughts back.
func (a *answer) unthink(s string) {
	n := len(a.blocks) - 1
	if n < 0 || a.blocks[n].Type != model.Thinking || a.blocks[n].Signature != "" {
		return
	}
	b := &a.blocks[n]
	if b.Thinking = strings.TrimSuffix(b.Thinking, s); strings.TrimSpace(b.Thinking) == "" {
		a.blocks = a.blocks[:n]
	}
}

// signed puts a provider's whole thinking block in the place of what was gathered.
func (a *answer) signed(b model.Block) {
	if n := len(a.blocks); n > 0 && a.blocks[n-1].Type == model.Thinking && a.blocks[n-1].Signature == "" {
		a.blocks[n-1] = b
		return
	}
	a.blocks = append(a.blocks, b)
}

// row is the assistant's entry.
func (a *attempt) row(ans answer) transcript.Entry {
	stop := ans.stop
	if len(ans.calls()) > 0 {
		stop = "toolUse"
	}
	for i := range ans.blocks {
		b := &ans.blocks[i]
		// Arguments that are no JSON are kept as a string: the row must be JSON.
		if b.Type == model.ToolCall && !json.Valid(b.Arguments) {
			b.Arguments = protocol.AppendString(nil, string(b.Arguments))
		}
	}
	usage := ans.usage
	return transcript.Entry{
		ID: a.r.NewID(), Type: transcript.Message, RunID: a.st.RunID, At: a.r.Clock.Now().UnixMilli(),
		Role: model.Assistant, Content: ans.blocks, StopReason: stop, Usage: &usage,
		Provider: a.sel.Name, Model: a.sel.Model, Silent: ans.silent,
	}
}

// count adds a model call to the run's totals.
func (a *attempt) count(ans answer) {
	a.chk.Step++
	a.chk.Usage = a.chk.Usage.Add(ans.usage)
	a.chk.LastUsage = ans.usage
	a.out.Emit("usage", map[string]any{"outputTokens": ans.usage.Output, "inputTokens": ans.usage.Input})
}
