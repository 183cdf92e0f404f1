package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"laneway/shared/claim"
	"laneway/shared/model"
	"laneway/shared/reply"
	"laneway/shared/stream"
	"laneway/shared/table"
	"laneway/shared/tool"
)

// States of a ledger row (L2). A row that is missing counts as planned: the call
// was not begun.
const (
	ledgerPlanned = "planned"
	ledgerStarted = "started"
	ledgerDone    = "done"
)

const (
	attrLedgerState  = "state"
	attrLedgerName   = "name"
	attrLedgerAt     = "at"
	attrLedgerResult = "result"
	attrLedgerTold   = "told" // its start event is out, though it is planned again
	attrLedgerCut    = "cut"  // how often the end of an invocation stopped it
)

// call is one tool call of the step that is being done.
type call struct {
	block  model.Block
	index  int
	state  string // as the ledger has it
	known  bool   // its start event was told
	told   bool   // its result was told
	begun  int64  // ms
	cuts   int64
	result *tool.Result

	blocked  bool // by the loop breaker
	launched bool // by this attempt; written by the goroutine that runs it, read after it
	cut      bool // likewise: the end of the turn stopped it
}

// storedResult is a result as the ledger has it.
type storedResult struct {
	Content []model.Block  `json:"content"`
	Details map[string]any `json:"details,omitempty"`
	IsError bool           `json:"isError,omitempty"`
	Meta    string         `json:"meta,omitempty"`
	Sent    []reply.Sent   `json:"sent,omitempty"`
}

// ledger reads what is known of the calls of the last message that have no result in
// the transcript: each is done, unknown, or still to run (L2).
func (a *attempt) ledger(ctx context.Context, open []model.Block) ([]*call, error) {
	var all []model.Block // of the message; the index counts these
	for i := len(a.rows) - 1; i >= 0 && all == nil; i-- {
		if a.rows[i].Role == model.Assistant {
			all = (&answer{blocks: a.rows[i].Content}).calls()
		}
	}
	rows, err := a.ledgerRows(ctx)
	if err != nil {
		return nil, err
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
		if at, ok := rows[i]; ok {
			if err := c.read(at, a.tools); err != nil {
				return nil, err
			}
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// read takes over what the ledger says.
func (c *call) read(at table.Attrs, tools *tool.Registry) error {
	c.state, c.cuts = at.Str(attrLedgerState), at.Int(attrLedgerCut)
	c.known = c.state != ledgerPlanned || at.Bool(attrLedgerTold)
	if n := at.Int(attrLedgerAt); n != 0 {
		c.begun = n
	}
	switch {
	case c.state == ledgerDone:
		var r storedResult
		if err := json.Unmarshal(at.Bytes(attrLedgerResult), &r); err != nil {
			return fmt.Errorf("ledger: %w", err)
		}
		c.result, c.told = &tool.Result{Content: r.Content, Details: r.Details, IsError: r.IsError, Meta: r.Meta, Sent: r.Sent}, true
	case c.state == ledgerStarted && tools.EffectOf(c.block.Name) == tool.Unsafe:
		r := unknownOutcome(c.block.Name)
		c.result = &r
	}
	return nil
}

// ledgerRows reads the rows of the present step by their index.
func (a *attempt) ledgerRows(ctx context.Context) (map[int]table.Attrs, error) {
	prefix := strings.TrimSuffix(a.st.LedgerKey(a.chk.Step, 0).SK, "0")
	out := make(map[int]table.Attrs)
	q := table.Query{Table: table.Runs, PK: a.st.PK(), From: prefix, To: prefix + ":"} // ':' is behind all digits
	for {
		page, err := a.r.Store.Query(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("read ledger: %w", err)
		}
		for _, it := range page.Items {
			i, err := strconv.Atoi(strings.TrimPrefix(it.Key.SK, prefix))
			if err != nil {
				return nil, fmt.Errorf("ledger key %q: %w", it.Key.SK, err)
			}
			out[i] = it.Attrs
		}
		if page.Next == "" {
			return out, nil
		}
		q.After = page.Next
	}
}

// unknownOutcome is what the model is told about a call that a dead attempt began.
func unknownOutcome(name string) tool.Result {
	r := tool.ErrorResult("The process that ran " + name + " ended before its result was recorded. Whether it took effect is unknown: check before doing it again.")
	r.Details = map[string]any{"status": "unknown", "reason": "runner-lost"}
	return r
}

// cutOutcome is what the model is told about a call that was stopped because the
// invocation ended, and is not made again.
func cutOutcome(name string) tool.Result {
	r := tool.ErrorResult(name + " was stopped: it took longer than the function that ran it may run. It may have taken effect in part: check before doing it again.")
	r.Details = map[string]any{"status": "aborted", "reason": "time-limit"}
	return r
}

// put is the op that writes a call's row whole.
func (a *attempt) put(c *call, state string, now int64) table.Op {
	item := table.Attrs{attrLedgerState: state, attrLedgerName: c.block.Name, attrLedgerAt: now}
	if c.cuts > 0 {
		item[attrLedgerCut] = c.cuts
	}
	if c.known && state == ledgerPlanned {
		item[attrLedgerTold] = true
	}
	return table.Op{Kind: table.Put, Key: a.st.LedgerKey(a.chk.Step, c.index), Item: item}
}

func (a *attempt) doneOp(k *call) (table.Op, error) {
	b, err := json.Marshal(storedResult{Content: a.kept(k), Details: tool.PersistDetails(k.result.Details), IsError: k.result.IsError, Meta: k.result.Meta, Sent: k.result.Sent})
	if err != nil {
		return table.Op{}, err
	}
	return table.Op{
		Kind: table.Update, Key: a.st.LedgerKey(a.chk.Step, k.index),
		Set: []table.SetOp{{Path: table.P(attrLedgerState), Value: ledgerDone}, {Path: table.P(attrLedgerResult), Value: b}},
	}, nil
}

// maxLedger bounds the ledger rows of one transaction; those of a message with more
// calls go before it, in transactions of their own: rows of a message that is not
// there mean nothing, and the next message of the step overwrites them.
const maxLedger = 30

func (a *attempt) ledgerFirst(ctx context.Context, ops []table.Op) ([]table.Op, error) {
	for len(ops) > maxLedger {
		if err := a.write(ctx, nil, change{tx: claim.Tx{Ops: ops[:maxLedger]}}); err != nil {
			return nil, err
		}
		ops = ops[maxLedger:]
	}
	return ops, nil
}

// start writes "started" for calls that have no result and are not begun, and tells
// that they begin, before any of them does (L2).
func (a *attempt) start(ctx context.Context, calls []*call) error {
	now := a.r.Clock.Now().UnixMilli()
	var ops []table.Op
	var events []stream.Event
	for _, c := range calls {
		if c.result != nil {
			continue
		}
		if c.state == ledgerPlanned {
			c.begun = now
			ops = append(ops, a.put(c, ledgerStarted, now))
		}
		if !c.known {
			events = append(events, a.toolStart(c.block, now)...)
		}
	}
	if len(ops) == 0 && len(events) == 0 {
		return nil
	}
	ops, err := a.ledgerFirst(ctx, ops)
	if err != nil {
		return err
	}
	if err := a.commitWith(ctx, change{tx: claim.Tx{Ops: ops}}, events...); err != nil {
		return err
	}
	for _, c := range calls {
		if c.result == nil {
			c.state, c.known = ledgerStarted, true
		}
	}
	return nil
}

// saveInterrupted writes what an invocation's end made of the calls that it stopped,
// so that the next attempt knows: those that were not begun, and those that may be
// made again, are planned; the others are done (L2). A call that may be made again is,
// but once: then it takes longer than a function may run.
func (a *attempt) saveInterrupted(ctx context.Context) error {
	var ops []table.Op
	var events []stream.Event
	now := a.r.Clock.Now().UnixMilli()
	for _, c := range a.doing {
		if c.state == ledgerDone {
			continue
		}
		again := c.result == nil || c.cut && !c.launched
		if c.cut && c.launched {
			c.cuts++
			again = c.cuts == 1 && a.tools.EffectOf(c.block.Name) != tool.Unsafe
			r := cutOutcome(c.block.Name)
			c.result = &r
		}
		if again {
			ops = append(ops, a.put(c, ledgerPlanned, now))
			continue
		}
		op, err := a.doneOp(c)
		if err != nil {
			return err
		}
		ops = append(ops, op)
		if !c.told {
			events = append(events, a.resultEvents([]*call{c})...)
		}
	}
	if a.doing = nil; len(ops) == 0 {
		return nil
	}
	ops, err := a.ledgerFirst(ctx, ops)
	if err != nil {
		return err
	}
	return a.commitWith(ctx, change{tx: claim.Tx{Ops: ops}}, events...)
}

// tolerable says whether a step may go on although its results in part are not in the
// ledger yet: they come with the rows at its end.
func tolerable(err error) bool {
	return err == nil || !errors.Is(err, claim.ErrStale) && !errors.Is(err, claim.ErrReleased)
}
