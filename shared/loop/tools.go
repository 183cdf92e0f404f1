package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"laneway/shared/model"
	"laneway/shared/stream"
	"laneway/shared/table"
	"laneway/shared/tool"
	"laneway/shared/transcript"
)

// States of a ledger row (L2). A row that is missing counts as planned: the call
// was not begun.
const (
	ledgerPlanned = "planned"
	ledgerStarted = "started"
	ledgerDone    = "done"
)

// call is one tool call of the step that is being done.
type call struct {
	block  model.Block
	index  int
	state  string
	known  bool // its start event was told by an earlier attempt
	result *tool.Result
	begun  int64
}

// commitCalls persists a message with tool calls, with a ledger row "started" for
// each that will now run and the start events, before any of them begins (L1, L2).
func (a *attempt) commitCalls(ctx context.Context, ans answer) error {
	a.count(ans)
	a.itemOn = false
	a.add(a.row(ans))
	calls := ans.calls()
	a.chk.ToolCalls += int64(len(calls))
	c := change{}
	events := []stream.Event{stream.EndMessage()}
	now := a.r.Clock.Now().UnixMilli()
	for i, b := range calls {
		c.tx.Ops = append(c.tx.Ops, table.Op{
			Kind: table.Put, Key: a.st.LedgerKey(a.chk.Step, i),
			Item: table.Attrs{"state": ledgerStarted, "name": b.Name, "at": now},
		})
		events = append(events, toolStart(b, now)...)
	}
	batch := a.out.Prepare(events...)
	c.events = []*stream.Batch{batch}
	if err := a.commit(ctx, c); err != nil {
		batch.Drop()
		return err
	}
	batch.Publish()
	return a.do(ctx, a.fresh(calls, now))
}

func (a *attempt) fresh(blocks []model.Block, now int64) []*call {
	calls := make([]*call, len(blocks))
	for i, b := range blocks {
		calls[i] = &call{block: b, index: i, state: ledgerPlanned, known: true, begun: now}
	}
	return calls
}

// runTools goes on with the calls of a message that another attempt left open: by
// the ledger each is done, unknown, or still to run (L2).
func (a *attempt) runTools(ctx context.Context, open []model.Block) error {
	calls, err := a.ledger(ctx, open)
	if err != nil {
		return err
	}
	return a.do(ctx, calls)
}

func (a *attempt) ledger(ctx context.Context, open []model.Block) ([]*call, error) {
	var all []model.Block // of the message; the index counts these
	for i := len(a.rows) - 1; i >= 0 && all == nil; i-- {
		if a.rows[i].Role == model.Assistant {
			all = (&answer{blocks: a.rows[i].Content}).calls()
		}
	}
	wanted := make(map[string]bool, len(open))
	for _, b := range open {
		wanted[b.ID] = true
	}
	var calls []*call
	for i, b := range all {
		if !wanted[b.ID] {
			continue
		}
		c := &call{block: b, index: i, state: ledgerPlanned, begun: a.r.Clock.Now().UnixMilli()}
		it, err := a.r.Store.Get(ctx, a.st.LedgerKey(a.chk.Step, i))
		if err != nil && !errors.Is(err, table.ErrNotFound) {
			return nil, err
		}
		if err == nil {
			c.state, c.known = it.Attrs.Str("state"), true
			if c.state == ledgerDone {
				var r tool.Result
				if err := json.Unmarshal(it.Attrs.Bytes("result"), &r); err != nil {
					return nil, fmt.Errorf("ledger: %w", err)
				}
				c.result = &r
			}
		}
		if c.state == ledgerStarted {
			if a.tools.EffectOf(b.Name) == tool.Unsafe {
				r := unknownOutcome(b.Name)
				c.result = &r
			}
			c.state = ledgerPlanned
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// unknownOutcome is what the model is told about a call that a dead attempt began.
func unknownOutcome(name string) tool.Result {
	r := tool.ErrorResult("The process that ran " + name + " ended before its result was recorded. Whether it took effect is unknown: check before doing it again.")
	r.Details = map[string]any{"status": "unknown", "reason": "runner-lost"}
	return r
}

// do runs the calls that have no result, writes each result as it comes, and ends
// with the results in call order as rows.
func (a *attempt) do(ctx context.Context, calls []*call) error {
	a.doing = calls
	if v := a.chk.Repeat.admit(calls); v.end {
		return errLoop
	} else if v.block {
		for _, c := range calls {
			if c.result == nil {
				r := tool.Blocked("tool-loop", textLoopBlocked)
				c.result = &r
			}
		}
	}
	var todo []*call
	for _, c := range calls {
		if c.result == nil {
			todo = append(todo, c)
		}
	}
	blocks := make([]model.Block, len(todo))
	for i, c := range todo {
		blocks[i] = c.block
	}
	type finished struct {
		c *call
		r tool.Result
	}
	done := make(chan finished, len(todo))
	go func() {
		defer close(done)
		tool.RunBatch(ctx, len(todo), tool.Plan(blocks, a.tools), func(ctx context.Context, i int) {
			done <- finished{todo[i], a.run(ctx, todo[i])}
		})
	}()
	var failed error
	left := len(todo)
	for f := range done { // ends when the last tool has: none outlives the step
		got := []*call{f.c}
		f.c.result = &f.r
		for range len(done) {
			g := <-done
			g.c.result = &g.r
			got = append(got, g.c)
		}
		left -= len(got)
		if left > 0 && failed == nil && context.Cause(ctx) == nil {
			failed = a.commitSome(ctx, got)
		}
	}
	if failed != nil {
		return failed
	}
	if err := context.Cause(ctx); err != nil {
		return err // the end writes what is there, and closes what is not
	}
	return a.commitResults(ctx, calls)
}

// run does one call. Nothing starts under a claim that is not fresh (C3).
func (a *attempt) run(ctx context.Context, c *call) tool.Result {
	if err := a.h.Fresh(); err != nil {
		return tool.ErrorResult(tool.TextAborted)
	}
	return tool.Execute(ctx, a.tools, tool.Call{
		ID: c.block.ID, Name: c.block.Name, Arguments: c.block.Arguments, Scope: a.scope,
		Key: a.st.RunID + "/" + strconv.FormatInt(a.chk.Step, 10) + "/" + strconv.Itoa(c.index),
		Update: func(partial tool.Result) {
			a.out.Emit("tool", toolUpdate(c.block, partial))
		},
	})
}

// commitSome writes results of a batch that is not done yet to the ledger, and
// tells them.
func (a *attempt) commitSome(ctx context.Context, got []*call) error {
	batch := a.out.Prepare(a.resultEvents(got)...)
	c := change{events: []*stream.Batch{batch}}
	for _, g := range got {
		op, err := a.doneOp(g)
		if err != nil {
			batch.Drop()
			return err
		}
		c.tx.Ops = append(c.tx.Ops, op)
		g.state = ledgerDone
	}
	if err := a.commit(ctx, c); err != nil {
		batch.Drop()
		return err
	}
	batch.Publish()
	return nil
}

// commitResults ends the step: every result as a row, in call order.
func (a *attempt) commitResults(ctx context.Context, calls []*call) error {
	var told []*call
	c := change{}
	for _, k := range calls {
		a.chk.Repeat.note(k)
		if k.state != ledgerDone {
			told = append(told, k)
			c.tx.Ops = append(c.tx.Ops, table.Op{
				Kind: table.Update, Key: a.st.LedgerKey(a.chk.Step, k.index),
				Set: []table.SetOp{{Path: table.P("state"), Value: ledgerDone}},
			})
		}
		a.add(a.resultRow(k))
	}
	batch := a.out.Prepare(a.resultEvents(told)...)
	c.events = []*stream.Batch{batch}
	if err := a.commit(ctx, c); err != nil {
		batch.Drop()
		return err
	}
	batch.Publish()
	return nil
}

func (a *attempt) doneOp(k *call) (table.Op, error) {
	b, err := json.Marshal(tool.Result{Content: a.kept(k), Details: tool.PersistDetails(k.result.Details), IsError: k.result.IsError, Meta: k.result.Meta})
	if err != nil {
		return table.Op{}, err
	}
	return table.Op{
		Kind: table.Update, Key: a.st.LedgerKey(a.chk.Step, k.index),
		Set: []table.SetOp{{Path: table.P("state"), Value: ledgerDone}, {Path: table.P("result"), Value: b}},
	}, nil
}

// kept is a result's content as the transcript keeps it.
func (a *attempt) kept(k *call) []model.Block {
	return tool.CapResult(*k.result, tool.TranscriptCap(a.sel.ContextWindow)).Content
}

func (a *attempt) resultRow(k *call) transcript.Entry {
	content := a.kept(k)
	if note := a.chk.Repeat.warning(k); note != "" {
		content = append(content[:len(content):len(content)], model.Block{Type: model.Text, Text: note})
	}
	return transcript.Entry{
		ID: a.r.NewID(), Type: transcript.Message, RunID: a.st.RunID, At: a.r.Clock.Now().UnixMilli(),
		Role: model.ToolResult, ToolCallID: k.block.ID, ToolName: k.block.Name,
		Content: content, IsError: k.result.IsError, Details: tool.PersistDetails(k.result.Details),
	}
}

func (a *attempt) resultEvents(calls []*call) []stream.Event {
	var out []stream.Event
	now := a.r.Clock.Now().UnixMilli()
	for _, k := range calls {
		out = append(out, toolResult(k.block, *k.result, k.begun, now)...)
	}
	return out
}
