package loop

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"laneway/shared/claim"
	"laneway/shared/meter"
	"laneway/shared/model"
	"laneway/shared/model/retry"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/stream"
	"laneway/shared/tool"
	"laneway/shared/transcript"
)

// checkpoint is what one attempt leaves to the next, in the run's record. It is
// written with every commit.
type checkpoint struct {
	run.Counters
	LastUsage model.Usage     `json:"lastUsage"`
	Asked     bool            `json:"asked,omitempty"` // a model was asked
	Retry     json.RawMessage `json:"retry,omitempty"`
	Clean     bool            `json:"clean,omitempty"` // written by a checkpoint that ended its attempt
	Repeat    repeats         `json:"repeat"`
	Took      []string        `json:"took,omitempty"`  // short ids of runs whose messages were delivered into this one
	CutAt     int64           `json:"cutAt,omitempty"` // the model call that the end of an invocation cut (R2)
	Route     routing         `json:"route,omitzero"`
}

// attempt is one invocation's work on one run. Its fields belong to the goroutine
// of Runner.attempt; what others do is marked.
type attempt struct {
	r        *Runner
	h        *claim.Holder
	ref      session.Ref
	st       run.Status
	entry    session.Entry
	meter    *meter.Meter // of this invocation
	began    time.Time
	sid      string
	rotate   bool  // the transcript is another one than META names, until the first commit
	since    int64 // ms: when that one began
	deadline time.Time

	head    int64
	rows    []transcript.Entry // what the model sees, unsaved rows included
	unsaved []transcript.Entry
	chk     checkpoint
	retry   *retry.Machine
	commits int // of the run, as far as it matters: none, one, several

	sel   model.Selected
	chain chain
	// preferred is what holds for the agent's runs where nothing else is said.
	preferred Preferred
	tools     *tool.Registry
	scope     tool.Scope
	out       *stream.Stream
	first     *stream.Batch   // lifecycle start: published, logged with the first commit
	begun     bool            // the message that the model is writing has begun for clients
	shown     strings.Builder // what they were shown of it
	said0     string          // of that, what stands in the conversation already and is continued
	asking    bool            // a model call is under way
	moved     bool            // something was committed since the session was last read
	doing     []*call         // calls of the step that is being done
	ending    []stream.Event  // results of calls that the end closed
	back      int64           // messages in the mailbox that the terminal moves back
	beside    sync.WaitGroup  // what goes on beside the turn
	fresh     bool            // the run begins with this attempt
	// returned is the messages that the terminal moves back, as they are then.
	returned []run.Status
	ended    atomic.Bool // the terminal is committed
	// endedAt is when that commit was begun. It is written before ended is set.
	endedAt time.Time
	subs    atomic.Int64  // the subscriptions that the stream knows of, as META counts them
	bare    bool          // nothing is read of the run but its record: it is to end
	revoked bool          // the run's token is gone: nothing of it is done
	phase   string        // what the turn is at before it asks a model
	asked   chan struct{} // closed by the first model call of the attempt
	asks    sync.Once
}

// attempt runs a claimed run until it ends, sleeps, or the invocation does.
func (r *Runner) attempt(ctx context.Context, h *claim.Holder, deadline time.Time) error {
	defer h.Close()
	a := &attempt{r: r, h: h, ref: h.Meta().Ref, deadline: deadline, began: r.Clock.Now(), meter: meter.From(ctx), asked: make(chan struct{})}
	if a.meter == nil {
		a.meter = &meter.Meter{}
		ctx = meter.With(ctx, a.meter)
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		// A panic: nothing of the attempt lives on, and the claim is given back, so
		// that the wake-up, which comes again, finds the run as it was stored.
		last, cancel := r.last(ctx)
		defer cancel()
		if err := a.abandon(last, nil); err != nil {
			r.Logger.Error("claim not released", "session", a.ref.Hash(), "err", err)
		}
	}()
	err := a.work(ctx)
	returned = true
	return err
}

func (a *attempt) work(ctx context.Context) error {
	err := a.setUp(ctx)
	if errors.Is(err, errSetup) {
		return a.endSetup(ctx)
	}
	if err != nil {
		last, cancel := a.r.last(ctx)
		defer cancel()
		return a.abandon(last, err)
	}
	if a.r.Preferred != nil {
		a.preferred = a.r.Preferred(a.st.AgentID)
	}
	wctx, stop := a.watch()
	defer stop()
	err = a.turn(wctx)
	a.beside.Wait()
	return a.end(ctx, wctx, err)
}

// abandon ends an attempt that can do no more, for reasons that are not the run's:
// whoever claims next goes on from the last step. It returns why, so that the
// wake-up comes again; a claim that was lost is no matter.
func (a *attempt) abandon(ctx context.Context, why error) error {
	if a.out != nil {
		a.out.Stop()
	}
	err := a.h.Release(ctx)
	if errors.Is(err, claim.ErrStale) || errors.Is(err, claim.ErrReleased) {
		err = nil
	}
	return errors.Join(why, err)
}

// last is the context of writes: never the cancelled one, and short.
func (r *Runner) last(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), r.Reserve)
}

// prepare chooses model and tools. Its errors end the run: they are not transient.
func (a *attempt) prepare(ctx context.Context) error {
	a.phase = phaseModel
	if err := a.chooseModel(ctx); err != nil {
		return err
	}
	a.resumeText()
	a.phase = phaseWorkspace
	if err := a.openTools(ctx); err != nil {
		return err
	}
	if a.st.Input.PromptMode == "none" {
		a.tools = nil
	}
	a.out.Emit("lifecycle", map[string]any{"phase": "model", "provider": a.sel.Name, "model": a.sel.Model})
	return nil
}

// openTools gets the agent's tools and its workspace.
func (a *attempt) openTools(ctx context.Context) error {
	type opened struct {
		tools *tool.Registry
		scope tool.Scope
	}
	scope := a.scope
	o, err := leave(ctx, a, func() (o opened, err error) {
		o.scope = scope
		o.tools, err = a.r.Agents.Tools(ctx, &o.scope)
		return o, err
	})
	if err != nil {
		return err
	}
	a.tools, a.scope = o.tools, o.scope
	return nil
}

// turn goes step by step until the run has ended (nil), or gives why it cannot go on.
func (a *attempt) turn(ctx context.Context) error {
	m := a.h.Meta()
	if m.Marked() {
		return stopped(m)
	}
	if a.revoked {
		return errRevoked()
	}
	if m.Stalled > a.r.Claims.Times.Stalls {
		return errStalled
	}
	if err := a.prepare(ctx); err != nil {
		return err
	}
	a.phase = phaseMessages
	if err := a.merge(ctx, m); err != nil {
		return err
	}
	a.tellQueue(ctx)
	for {
		if err := a.ready(ctx); err != nil {
			return err
		}
		if open := transcript.OpenCalls(a.rows); len(open) > 0 {
			if err := a.resumeTools(ctx, open); err != nil {
				return err
			}
			continue
		}
		if err := a.collect(ctx); err != nil {
			return err
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

// ready is asked before each step: is the claim fresh, is the run's time not over, and
// is enough of the invocation left (R1)?
func (a *attempt) ready(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := a.h.Fresh(); err != nil {
		return err
	}
	if end := a.endOfRun(); !end.IsZero() && !a.r.Clock.Now().Before(end) {
		return errRunTimeout // it ended while nobody was at it
	}
	if !a.deadline.IsZero() && a.deadline.Sub(a.r.Clock.Now()) < a.r.StepNeed {
		return errNoTime
	}
	return nil
}

// collect takes in the messages that were steered into the run, before each model
// call. The holder's own picture of the session is as old as its last look, so it is
// read anew where time has passed since the claim.
func (a *attempt) collect(ctx context.Context) error {
	m := a.h.Meta()
	if a.moved {
		now, err := session.LoadMeta(ctx, a.r.Store, a.ref)
		switch {
		case err != nil:
			// The mail waits for the next step, or for the end, which sees it.
			a.r.Logger.Warn("session not read before a step", "session", a.ref.Hash(), "err", err)
		case now.Token != a.h.Token() || now.Owner != a.h.Owner():
			return claim.ErrStale
		default:
			m = now
		}
		a.moved = false
	}
	if m.Marked() {
		return stopped(m)
	}
	_, err := a.deliver(ctx, m)
	return err
}
