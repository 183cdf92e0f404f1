package loop

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"laneway/shared/claim"
	"laneway/shared/model"
	"laneway/shared/session"
	"laneway/shared/stream"
	"laneway/shared/table"
	"laneway/shared/tool"
	"laneway/shared/transcript"
)

// commitCalls persists a message with tool calls, with a ledger row "started" for
// each that will now run and the start events, before any of them begins (L1, L2).
// Where the attempt must end first the answer is kept all the same, and the calls are
// planned: they run in the next one.
func (a *attempt) commitCalls(ctx context.Context, ans answer) error {
	a.count(ans)
	a.add(a.row(ans))
	now := a.r.Clock.Now().UnixMilli()
	calls := fresh(ans.calls(), now)
	a.chk.ToolCalls += int64(len(calls))
	later := a.ready(ctx)
	state := ledgerStarted
	if later != nil {
		state = ledgerPlanned
	}
	var ops []table.Op
	events := []stream.Event{stream.EndMessage()}
	for _, c := range calls {
		c.state, c.known = state, later == nil
		ops = append(ops, a.put(c, state, now))
		if later == nil {
			events = append(events, a.toolStart(c.block, now)...)
		}
	}
	ops, err := a.ledgerFirst(ctx, ops)
	if err != nil {
		return err
	}
	if err := a.commitWith(ctx, change{tx: claim.Tx{Ops: ops}}, events...); err != nil {
		return err
	}
	a.endMessage()
	if later != nil {
		return later
	}
	return a.do(ctx, calls)
}

// endMessage forgets what clients were shown of a message that is committed now.
func (a *attempt) endMessage() {
	a.begun = false
	a.shown.Reset()
	a.said0 = ""
}

func fresh(blocks []model.Block, now int64) []*call {
	calls := make([]*call, len(blocks))
	for i, b := range blocks {
		calls[i] = &call{block: b, index: i, begun: now}
	}
	return calls
}

// resumeTools goes on with the calls of a message that another attempt left open.
func (a *attempt) resumeTools(ctx context.Context, open []model.Block) error {
	calls, err := a.ledger(ctx, open)
	if err != nil {
		return err
	}
	if err := a.start(ctx, calls); err != nil {
		return err
	}
	return a.do(ctx, calls)
}

// do runs the calls that have no result, writes each result as it comes, and ends
// with the results in call order as rows.
func (a *attempt) do(ctx context.Context, calls []*call) error {
	a.doing = calls
	v := a.chk.Repeat.admit(calls)
	for _, c := range calls {
		if (v.block || v.end) && c.result == nil {
			r := tool.Blocked("tool-loop", textLoopBlocked)
			c.result, c.blocked = &r, true
		}
	}
	if v.end {
		return errLoop
	}
	var todo []*call
	for _, c := range calls {
		if c.result == nil {
			todo = append(todo, c)
		}
	}
	if err := a.runAll(ctx, todo); err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err // the end writes what is there, and closes what is not
	}
	return a.commitResults(ctx, calls)
}

// runAll runs calls and writes the results of those that are faster than others as
// they come. When it returns, no tool runs any more, but those that did not end within
// their drain of being told to.
func (a *attempt) runAll(ctx context.Context, todo []*call) (err error) {
	blocks := make([]model.Block, len(todo))
	for i, c := range todo {
		blocks[i] = c.block
	}
	type finished struct {
		c *call
		r tool.Result
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan finished, len(todo))
	defer func() {
		cancel(err) // whatever ends the step ends its tools
		for late := a.r.Clock.After(a.drain(ctx)); ; {
			select {
			case f, more := <-done:
				if !more {
					return
				}
				f.c.result = &f.r
			case <-late:
				a.leaveTools(todo)
				return
			}
		}
	}()
	sequential := tool.Plan(blocks, a.tools)
	skip := len(todo) > 0 && a.look(ctx) // once before a batch that runs side by side
	go func() {
		defer close(done)
		tool.RunBatch(ctx, len(todo), sequential, func(ctx context.Context, i int) {
			if skip || sequential && i > 0 && a.mailWaits(ctx) {
				done <- finished{todo[i], tool.Skipped()}
				return
			}
			done <- finished{todo[i], a.run(ctx, todo[i])}
		})
	}()
	for left := len(todo); left > 0; {
		var f finished
		select {
		case f = <-done:
		case <-ctx.Done():
			return nil
		}
		got := []*call{f.c}
		f.c.result = &f.r
		for range len(done) {
			g := <-done
			g.c.result = &g.r
			got = append(got, g.c)
		}
		left -= len(got)
		if left == 0 || context.Cause(ctx) != nil {
			return nil
		}
		if err := a.commitSome(ctx, got); !tolerable(err) {
			return err
		}
	}
	return nil
}

// leaveTools goes on without tools that do not end although they were told to: what
// they may still do, they do without the claim. Nothing of theirs is touched any more,
// their calls are closed as aborted ones.
func (a *attempt) leaveTools(todo []*call) {
	var names []string
	for _, c := range todo {
		if c.result != nil {
			continue
		}
		names = append(names, c.block.Name)
		for i, d := range a.doing {
			if d == c {
				a.doing[i] = &call{block: c.block, index: c.index, begun: c.begun, known: true, launched: true, cut: true}
			}
		}
	}
	a.r.Logger.Warn("tools did not end with their step", "session", a.ref.Hash(), "run", a.st.Ref.Run, "tools", names)
}

// look is what is read before a batch of calls: whether a message waits, and whether
// people want to be told more or less of calls than before.
func (a *attempt) look(ctx context.Context) (mail bool) {
	var wg sync.WaitGroup
	wg.Go(func() { mail = a.mailWaits(ctx) })
	e, err := session.LoadEntry(ctx, a.r.Store, a.ref)
	if err == nil && !e.Deleted {
		a.entry.VerboseLevel = e.VerboseLevel
	}
	wg.Wait()
	return mail
}

// mailWaits says whether a message was steered into the run: then what has not begun
// is skipped, and the message comes before the next model call (spec: runtime 2.5).
func (a *attempt) mailWaits(ctx context.Context) bool {
	m, err := session.LoadMeta(ctx, a.r.Store, a.ref)
	return err == nil && m.MailN > 0 && !m.Marked()
}

// run does one call. Nothing starts under a claim that is not fresh (C3).
func (a *attempt) run(ctx context.Context, c *call) tool.Result {
	if ctx.Err() != nil || a.h.Fresh() != nil {
		c.cut = true
		return tool.ErrorResult(tool.TextAborted)
	}
	c.launched = true
	limit := a.tools.LimitOf(c.block.Name, c.block.Arguments)
	defer a.h.Working(session.Work{Kind: session.WorkTool, Tool: c.block.Name, CallID: c.block.ID, Limit: limit})()
	r := tool.Execute(ctx, a.tools, tool.Call{
		ID: c.block.ID, Name: c.block.Name, Arguments: c.block.Arguments, Scope: a.scope,
		Key: a.st.RunID + "/" + strconv.FormatInt(a.chk.Step, 10) + "/" + strconv.Itoa(c.index),
		Update: func(partial tool.Result) {
			a.h.Progress(session.ProgressToolUpdated)
			a.toolUpdate(c.block, partial)
		},
	})
	c.cut = r.IsError && ctx.Err() != nil
	return r
}

// commitSome writes results of a batch that is not done yet to the ledger, and
// tells them.
func (a *attempt) commitSome(ctx context.Context, got []*call) error {
	var ops []table.Op
	for _, g := range got {
		op, err := a.doneOp(g)
		if err != nil {
			return err
		}
		ops = append(ops, op)
	}
	ops, err := a.ledgerFirst(ctx, ops)
	if err != nil {
		return err
	}
	if err := a.commitWith(ctx, change{tx: claim.Tx{Ops: ops}}, a.resultEvents(got)...); err != nil {
		return err
	}
	for _, g := range got {
		g.state, g.told = ledgerDone, true
	}
	return nil
}

// commitResults ends the step: every result as a row, in call order; those of many
// calls in several commits.
func (a *attempt) commitResults(ctx context.Context, calls []*call) error {
	for part := range slices.Chunk(calls, maxLedger) {
		var untold []*call
		var ops []table.Op
		for _, k := range part {
			a.chk.Repeat.note(k)
			if !k.told {
				untold = append(untold, k)
			}
			if k.state != ledgerDone {
				ops = append(ops, table.Op{
					Kind: table.Update, Key: a.st.LedgerKey(a.chk.Step, k.index),
					Set: []table.SetOp{{Path: table.P(attrLedgerState), Value: ledgerDone}},
				})
			}
			a.add(a.resultRow(k))
		}
		if err := a.commitWith(ctx, change{tx: claim.Tx{Ops: ops}}, a.resultEvents(untold)...); err != nil {
			return err
		}
	}
	a.doing = nil
	return nil
}

// kept is a result's content as the transcript keeps it.
func (a *attempt) kept(k *call) []model.Block {
	return tool.CapResult(*k.result, tool.TranscriptCap(a.sel.ContextWindow)).Content
}

func (a *attempt) resultRow(k *call) transcript.Entry {
	content := a.kept(k)
	if note := a.chk.Repeat.warning(k); note != "" {
		content = append(slices.Clip(content), model.Block{Type: model.Text, Text: note})
	}
	e := transcript.Entry{
		ID: a.r.NewID(), Type: transcript.Message, RunID: a.st.RunID, At: a.r.Clock.Now().UnixMilli(),
		Role: model.ToolResult, ToolCallID: k.block.ID, ToolName: k.block.Name,
		Content: content, IsError: k.result.IsError, Details: tool.PersistDetails(k.result.Details),
	}
	if !k.result.IsError {
		e.Sent = k.result.Sent
	}
	if level := a.verbose(); level != "off" {
		e.Verbose = level
	}
	return e
}

func (a *attempt) resultEvents(calls []*call) []stream.Event {
	var out []stream.Event
	if a.heartbeat() {
		return nil
	}
	now := a.r.Clock.Now().UnixMilli()
	for _, k := range calls {
		out = append(out, toolResult(k.block, *k.result, k.begun, now)...)
	}
	return out
}
