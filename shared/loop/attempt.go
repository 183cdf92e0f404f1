package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"laneway/shared/claim"
	"laneway/shared/model"
	"laneway/shared/model/retry"
	"laneway/shared/reply"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/stream"
	"laneway/shared/table"
	"laneway/shared/tool"
	"laneway/shared/transcript"
)

// checkpoint is what one attempt leaves to the next, in the run's record. It is
// written with every commit.
type checkpoint struct {
	Step      int64           `json:"step"`            // model calls that were committed
	ToolCalls int64           `json:"tools,omitempty"` // calls that were begun
	Usage     model.Usage     `json:"usage"`
	LastUsage model.Usage     `json:"lastUsage"`
	Asked     bool            `json:"asked,omitempty"` // a model was asked
	Retry     json.RawMessage `json:"retry,omitempty"`
	Clean     bool            `json:"clean,omitempty"` // written by a checkpoint that ended its attempt
	Repeat    repeats         `json:"repeat"`
	Took      []string        `json:"took,omitempty"`  // short ids of runs whose messages were delivered into this one
	CutAt     int64           `json:"cutAt,omitempty"` // the step that the end of an invocation cut (R2)
}

// attempt is one invocation's work on one run. Its fields belong to the goroutine
// of Runner.attempt; what others do is marked.
type attempt struct {
	r        *Runner
	h        *claim.Holder
	ref      session.Ref
	st       run.Status
	entry    session.Entry
	sid      string
	rotate   bool // the transcript is another one than META names, until the first commit
	deadline time.Time

	head    int64
	rows    []transcript.Entry // what the model sees, unsaved rows included
	unsaved []transcript.Entry
	chk     checkpoint
	retry   *retry.Machine

	sel    model.Selected
	tools  *tool.Registry
	scope  tool.Scope
	out    *stream.Stream
	first  *stream.Batch // lifecycle start: published, logged with the first commit
	shown  strings.Builder
	itemOn bool // text of the current message was shown
	doing  []*call
	moved  int64       // messages in the mailbox that the terminal moves back
	ended  atomic.Bool // the terminal is committed
}

// attempt runs a claimed run until it ends, sleeps, or the invocation does.
func (r *Runner) attempt(ctx context.Context, h *claim.Holder, deadline time.Time) error {
	defer h.Close()
	a := &attempt{r: r, h: h, ref: h.Meta().Ref, deadline: deadline}
	if err := a.load(ctx); err != nil {
		// Nothing has begun: give the claim back and let the wake-up come again.
		last, cancel := r.last(ctx)
		defer cancel()
		return errors.Join(err, h.Release(last))
	}
	wctx, stop := a.watch(ctx)
	defer stop()
	err := a.turn(wctx)
	return a.end(ctx, wctx, err)
}

// last is the context of last writes: never the cancelled one, and short.
func (r *Runner) last(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), r.Reserve)
}

// load reads what the run needs, side by side: three calls in a row lead from the
// wake-up to the model request.
func (a *attempt) load(ctx context.Context) error {
	m := a.h.Meta()
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		a.st, err = run.Load(gctx, a.r.Store, run.Ref{Tenant: m.Tenant, Run: m.Active})
		return err
	})
	g.Go(func() (err error) {
		a.entry, err = session.LoadEntry(gctx, a.r.Store, m.Ref)
		return err
	})
	g.Go(func() (err error) {
		a.rows, err = a.r.Log.Context(gctx, m)
		return err
	})
	if err := g.Wait(); err != nil {
		return fmt.Errorf("load run: %w", err)
	}
	a.sid, a.head = m.SessionID, m.Head
	if want := a.st.Input.SessionID; want != "" && want != m.SessionID && a.st.UserSeq == 0 {
		if err := a.otherTranscript(ctx, want); err != nil {
			return err
		}
	}
	if len(a.st.Checkpoint) > 0 {
		if err := json.Unmarshal(a.st.Checkpoint, &a.chk); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
	}
	var err error
	if a.retry, err = retry.Restore(a.r.Retry, a.chk.Retry); err != nil {
		return err
	}
	a.addUser()
	return a.open(ctx)
}

// otherTranscript makes a transcript that the caller named the session's own, with
// the first commit. One that was used before goes on where it ended.
func (a *attempt) otherTranscript(ctx context.Context, sid string) error {
	page, err := a.r.Store.Query(ctx, table.Query{Table: table.Sessions, PK: a.ref.TranscriptPK(sid), Limit: 1, Desc: true})
	if err != nil {
		return err
	}
	a.sid, a.rotate, a.head, a.rows = sid, true, 0, nil
	if len(page.Items) == 0 {
		return nil
	}
	if _, err := fmt.Sscanf(page.Items[0].Key.SK, "%d", &a.head); err != nil {
		return err
	}
	a.rows, err = a.r.Log.Range(ctx, a.ref, sid, 1, a.head)
	return err
}

// addUser puts the message behind the past, once: it becomes the row
// "<runId>:user" with the first commit.
func (a *attempt) addUser() {
	if a.st.UserSeq != 0 {
		return
	}
	e := transcript.Entry{
		ID: a.r.NewID(), Type: transcript.Message, RunID: a.st.RunID, At: a.st.AcceptedAt, Key: a.st.RunID + ":user",
		Role: model.User, Content: []model.Block{{Type: model.Text, Text: a.st.Input.Message}},
	}
	a.add(e)
}

// add appends a row to what the model sees and to what the next commit writes.
func (a *attempt) add(e transcript.Entry) {
	e.Seq = a.head + int64(len(a.unsaved)) + 1
	a.unsaved = append(a.unsaved, e)
	a.rows = append(a.rows, e)
}

// open makes the run's event stream and says that it has begun. The start itself
// is in the tables since the claim (META.actAt); its row in the event log comes
// with the first commit.
func (a *attempt) open(ctx context.Context) error {
	m := a.h.Meta()
	// What dead attempts sent without a commit is not known: leave room for each (S1).
	dead := m.Attempt - max(a.st.Attempt, 1)
	if a.chk.Clean {
		dead--
	}
	a.chk.Clean = false
	next := max(a.st.NextEvent, 1) + dead*stream.Block
	messages, said := a.said()
	var err error
	a.out, err = a.r.Stream.Open(ctx, stream.Info{
		Ref: a.st.Ref, RunID: a.st.RunID, SessionKey: a.ref.Key, SessionID: a.sid, AgentID: a.st.AgentID,
		Lane: a.st.Lane, Origin: a.st.Origin, OriginUsesChat: a.st.Method != "agent",
		Messages: messages, Text: said, MayPost: a.mayPost,
	}, next)
	if err != nil {
		return err
	}
	a.st.StartedAt = m.ActiveAt
	if a.st.NextEvent == 0 { // no attempt has logged it yet
		// Published before its row is in the log: the claim's own write said that the
		// run began, and when (META.actAt).
		a.first = a.out.Prepare(lifecycle("start", "startedAt", a.st.StartedAt))
		a.first.Publish()
	}
	a.scope = tool.Scope{Tenant: a.ref.Tenant, AgentID: a.st.AgentID, SessionKey: a.ref.Key, SessionID: a.sid, RunID: a.st.RunID}
	return nil
}

// mayPost says whether this attempt may still tell clients anything (C3): while its
// claim is fresh, and after its terminal, which it alone committed.
func (a *attempt) mayPost() bool { return a.ended.Load() || a.h.Fresh() == nil }

// said is what earlier attempts of the run have told clients already.
func (a *attempt) said() (messages int, text string) {
	var texts []string
	for i := range a.rows {
		e := &a.rows[i]
		if e.RunID != a.st.RunID || e.Role != model.Assistant || e.Abort != nil {
			continue
		}
		messages++
		if s := reply.Strip(e.Text()); s != "" && !reply.IsSilent(s) {
			texts = append(texts, s)
		}
	}
	return messages, strings.Join(texts, "\n\n")
}

// prepare chooses model and tools. Its errors end the run: they are not transient.
func (a *attempt) prepare(ctx context.Context) error {
	var err error
	if a.sel, err = a.r.Models.Select(ctx, a.st.Input, a.entry); err != nil {
		return err
	}
	if a.tools, err = a.r.Agents.Tools(ctx, &a.scope); err != nil {
		return err
	}
	if a.st.Input.PromptMode == "none" {
		a.tools = nil
	}
	a.out.Emit("lifecycle", map[string]any{"phase": "model", "provider": a.sel.Name, "model": a.sel.Model})
	return nil
}

// turn goes step by step until the run has ended (nil), or gives why it cannot go on.
func (a *attempt) turn(ctx context.Context) error {
	m := a.h.Meta()
	if m.Marked() {
		return &stopError{why: stopReason(m)}
	}
	if m.Stalled > a.r.Claims.Times.Stalls {
		return errStalled
	}
	if err := a.prepare(ctx); err != nil {
		return err
	}
	for {
		if err := a.ready(ctx); err != nil {
			return err
		}
		if err := a.deliver(ctx, a.h.Meta()); err != nil {
			return err
		}
		if open := transcript.OpenCalls(a.rows); len(open) > 0 {
			if err := a.runTools(ctx, open); err != nil {
				return err
			}
			continue
		}
		if a.chk.Step >= a.r.MaxSteps {
			return errTooManySteps
		}
		ans, err := a.ask(ctx)
		if err != nil {
			return err
		}
		if len(ans.calls()) == 0 {
			done, err := a.finishOK(ctx, ans)
			if err != nil || done {
				return err
			}
			continue
		}
		if err := a.commitCalls(ctx, ans); err != nil {
			return err
		}
	}
}

// ready is asked before each step: is the claim fresh, and is enough of the
// invocation left (R1)?
func (a *attempt) ready(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := a.h.Fresh(); err != nil {
		return err
	}
	if !a.deadline.IsZero() && a.deadline.Sub(a.r.Clock.Now()) < a.r.StepNeed {
		return errNoTime
	}
	return nil
}
