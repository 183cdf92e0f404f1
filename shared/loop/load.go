package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"laneway/shared/lane"
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

// load reads what the run needs, side by side: three calls in a row lead from the
// wake-up to the model request. An attempt that only ends a run without progress
// needs nothing but its record: a past that cannot be read must not hold the lane
// for ever (R3).
func (a *attempt) load(ctx context.Context) error {
	m := a.h.Meta()
	given := m.Stalled > a.r.Claims.Times.Stalls // the run is given up
	a.rows, a.unsaved, a.chk = nil, nil, checkpoint{}
	forgive := func(err error) error {
		if err == nil || !given {
			return err
		}
		a.r.Logger.Error("a run is ended without its past", "session", a.ref.Hash(), "run", m.Active, "err", err)
		return nil
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		a.st, err = run.Load(gctx, a.r.Store, run.Ref{Tenant: m.Tenant, Run: m.Active})
		if err == nil && !a.bare {
			err = forgive(a.checkToken(gctx))
		}
		return err
	})
	if !a.bare {
		g.Go(func() (err error) {
			a.entry, err = session.LoadEntry(gctx, a.r.Store, m.Ref)
			return forgive(err)
		})
		g.Go(func() (err error) {
			a.rows, err = a.r.Log.Context(gctx, m)
			return forgive(err)
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("load run: %w", err)
	}
	a.sid, a.head = m.SessionID, m.Head
	if want := a.st.Input.SessionID; want != "" && want != m.SessionID && a.st.UserSeq == 0 {
		if err := forgive(a.otherTranscript(ctx, want)); err != nil {
			return err
		}
	}
	if err := forgive(a.restore()); err != nil {
		return err
	}
	a.addUser(ctx)
	return a.open(ctx)
}

// restore reads what the attempt before this one left.
func (a *attempt) restore() (err error) {
	a.retry = retry.New(a.r.Retry)
	if len(a.st.Checkpoint) == 0 {
		// Messages that are lines of this summary end with it.
		a.chk.Took = append(a.chk.Took, a.st.Input.Overflow.Runs...)
		return nil
	}
	a.commits = 1
	var chk checkpoint
	if err := json.Unmarshal(a.st.Checkpoint, &chk); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	m, err := retry.Restore(a.r.Retry, chk.Retry)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	a.chk, a.retry = chk, m
	return nil
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
		a.since = a.r.Clock.Now().UnixMilli()
		return nil
	}
	if _, err := fmt.Sscanf(page.Items[0].Key.SK, "%d", &a.head); err != nil {
		return err
	}
	a.rows, err = a.r.Log.Range(ctx, a.ref, sid, 1, a.head)
	if len(a.rows) > 0 {
		a.since = a.rows[0].At
	}
	return err
}

// addUser puts the message behind the past, once: it becomes the row
// "<runId>:user" with the first commit. That of a run whose token is gone stays out.
func (a *attempt) addUser(ctx context.Context) {
	if a.st.UserSeq != 0 || a.revoked {
		return
	}
	if why := a.st.Input.ResetReason; why != "" && a.rotate {
		a.add(transcript.Entry{ID: a.r.NewID(), Type: transcript.Reset, At: a.st.AcceptedAt, Reason: why})
	}
	e := transcript.Entry{
		ID: a.r.NewID(), Type: transcript.Message, RunID: a.st.RunID, At: a.st.AcceptedAt, Key: a.st.RunID + ":user",
		Role: model.User, Content: a.content(ctx, a.st.Input),
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
	unclean := m.Attempt > 1 && !a.chk.Clean || dead > 0
	a.chk.Clean = false
	next := max(a.st.NextEvent, 1) + max(dead, 0)*stream.Block
	messages, said := a.said()
	var err error
	a.subs.Store(m.SubRev) // before they are read: a later one is a later count
	a.out, err = a.r.Stream.Open(ctx, stream.Info{
		Ref: a.st.Ref, RunID: a.st.RunID, SessionKey: a.ref.Key, SessionID: a.sid, AgentID: a.st.AgentID,
		Lane: a.st.Lane, Origin: a.st.Origin, OriginUsesChat: a.st.Method != "agent", Heartbeat: a.heartbeat(),
		Messages: messages, Text: said, Again: m.Attempt > 1, MayPost: a.mayPost,
	}, next)
	if err != nil {
		return err
	}
	a.st.StartedAt, a.st.SessionID = m.ActiveAt, a.sid
	if a.st.NextEvent != 0 {
		a.st.Disposition = run.Disposition{Kind: lane.IsStarted}
	} else { // no attempt has logged it yet
		// Published before its row is in the log: the claim's own write said that the
		// run began, and when (META.actAt).
		a.fresh = true
		a.begins()
		a.first = a.out.Prepare(lifecycleStart(a.st.StartedAt))
		a.first.Publish()
	}
	if unclean {
		// What a dead attempt showed of its message comes anew.
		a.out.Replace("")
		a.begun = true
	}
	a.scope = tool.Scope{Tenant: a.ref.Tenant, AgentID: a.st.AgentID, SessionKey: a.ref.Key, SessionID: a.sid, RunID: a.st.RunID}
	return nil
}

// mayPost says whether this attempt may still tell clients anything (C3): while its
// claim is to be trusted, and after its terminal, which it alone committed, for as
// long as nobody else may tell the end.
func (a *attempt) mayPost() bool {
	if a.ended.Load() {
		return a.leads()
	}
	return a.h.Trusted()
}

// leads says whether the run's end is this attempt's to tell: for most of an answerer's
// time. A process that stood still meanwhile leaves it to others.
func (a *attempt) leads() bool {
	now, limit := a.r.Clock.Now(), a.r.Claims.Times.Answer*3/4
	return now.Sub(a.endedAt) < limit && now.Round(0).Sub(a.endedAt.Round(0)) < limit
}

// said is what earlier attempts of the run have told clients already.
func (a *attempt) said() (messages int, text string) {
	var texts []string
	part := "" // of an answer that its output limit cut: the next row goes on with it
	for i := range a.rows {
		e := &a.rows[i]
		if e.RunID != a.st.RunID || e.Role != model.Assistant || e.Abort != nil {
			continue
		}
		if part += e.Text(); cutRow(e) {
			continue
		}
		if s := reply.Strip(part); s != "" {
			messages++
			texts = append(texts, s)
		}
		part = ""
	}
	return messages, strings.Join(texts, "\n\n")
}
