package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"laneway/shared/session"
	"laneway/shared/table"
)

// Holder is a held claim. Its methods may be called by many goroutines; the
// writes they ask for are made one after another by the holder's own.
type Holder struct {
	svc   *Service
	ref   session.Ref
	owner string
	token int64

	work chan job
	done chan struct{}   // closed when the goroutine has ended
	ctx  context.Context //nolint:containedctx // the claim's life, which Context gives away
	lose context.CancelCauseFunc

	mu      sync.Mutex
	meta    session.Meta // as last seen or written
	renewed time.Time    // when the last successful renewal or commit was begun
	gone    error        // why the claim is no longer held; also behind the end of ctx
	unsure  []string     // ids of later writes that got no answer: at most one of them was applied
	nested  int          // further holds of this owner
	wake    func(session.Meta)

	last sync.Mutex // orders the writes that are made after the goroutine has ended

	marks marks
}

type job struct {
	ctx context.Context //nolint:containedctx // of the call that waits for it
	do  func(context.Context) error
	out chan error
}

// hold starts the holder's goroutine. It ends with Release, with the loss of the
// claim, or with ctx.
func (s *Service) hold(ctx context.Context, m session.Meta, began time.Time) *Holder {
	h := &Holder{
		svc: s, ref: m.Ref, owner: m.Owner, token: m.Token, meta: m, renewed: began,
		work: make(chan job), done: make(chan struct{}), marks: marks{last: m.Progress},
	}
	h.ctx, h.lose = context.WithCancelCause(ctx)
	go h.run()
	return h
}

// Context ends when the claim is lost (cause ErrStale or ErrLapsed), released
// (ErrReleased), or when the context that it was taken under ends.
func (h *Holder) Context() context.Context { return h.ctx }

// Owner and Token identify the claim.
func (h *Holder) Owner() string { return h.owner }

// Token is the fencing token.
func (h *Holder) Token() int64 { return h.token }

// Meta is the hot item as the holder last saw it.
func (h *Holder) Meta() session.Meta {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.meta
}

// OnChange sets a function that the holder's goroutine calls with each fresh
// reading of the hot item: marks, mail, subscriptions (S5). It must not block and
// must not call the holder.
func (h *Holder) OnChange(f func(session.Meta)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wake = f
}

// Fresh is nil while the holder may start a tool, a model call or a post (C3). It
// is measured on the clock that the holder was given, which on a real machine is
// both monotonic and, after a suspend, wall time: the older of the two counts.
func (h *Holder) Fresh() error {
	if err := context.Cause(h.ctx); err != nil {
		return err
	}
	if h.old() {
		return ErrLapsed
	}
	return nil
}

// Trusted says whether what was begun may still be told: the claim is not lost and
// its lease not too old, also where the context that it was taken under has ended.
func (h *Holder) Trusted() bool {
	h.mu.Lock()
	gone := h.gone
	h.mu.Unlock()
	return gone == nil && !h.old()
}

// over ends the holder's context and remembers why the claim is not held any more.
func (h *Holder) over(why error) {
	h.mu.Lock()
	if h.gone == nil {
		h.gone = why
	}
	h.mu.Unlock()
	h.lose(why)
}

func (h *Holder) old() bool {
	h.mu.Lock()
	renewed := h.renewed
	h.mu.Unlock()
	now := h.svc.Clock.Now()
	mono, wall := now.Sub(renewed), now.Round(0).Sub(renewed.Round(0))
	return max(mono, wall) > h.svc.Times.Trust
}

// Tx is what a holder writes: changes of the hot item and further ops, all or
// nothing, under the claim.
type Tx struct {
	Set      []table.SetOp
	Add      []table.AddOp
	AddTo    []table.MemberOp
	TakeFrom []table.MemberOp
	Remove   []table.Path
	If       table.Cond // a further condition on the hot item
	Head     int64      // the transcript's new head; 0: it does not move
	Ops      []table.Op
	Release  bool // gives the claim up in the same transaction
}

// RefusedError says that the claim is held but Tx.If failed; nothing was written.
type RefusedError struct{ Meta session.Meta }

func (e *RefusedError) Error() string { return "claim: condition on the session failed" }

// Commit makes a transaction under the claim (C2) and renews the lease with it.
// Errors: ErrStale, *RefusedError, a *table.ConditionError for one of tx.Ops
// (its Op counts from tx.Ops), or what the store said after retries.
func (h *Holder) Commit(ctx context.Context, tx Tx) error {
	return h.submit(ctx, func(ctx context.Context) error { return h.commit(ctx, tx) })
}

// Nest takes the claim once more for the same owner: the token stays, the holds are
// counted, and the claim is free after as many releases (C1). Without allowReentrant
// it is refused with ErrNested (C4).
func (h *Holder) Nest(ctx context.Context, allowReentrant bool) error {
	if !allowReentrant {
		return ErrNested
	}
	if err := h.Commit(ctx, Tx{Add: []table.AddOp{{Path: table.P(session.AttrNest), N: 1}}}); err != nil {
		return err
	}
	h.mu.Lock()
	h.nested++
	h.mu.Unlock()
	return nil
}

// Release gives the claim up, or one nested hold of it. The caller then looks at
// Meta and sends a wake-up where work is left (C4). A claim that was lost
// meanwhile is ErrStale.
func (h *Holder) Release(ctx context.Context) error {
	h.mu.Lock()
	nested := h.nested > 0
	if nested {
		h.nested--
	}
	h.mu.Unlock()
	if nested {
		return h.Commit(ctx, Tx{Add: []table.AddOp{{Path: table.P(session.AttrNest), N: -1}}})
	}
	err := h.Commit(ctx, Tx{Release: true})
	h.Close()
	return err
}

// Close ends the holder's goroutine without writing; the lease runs out by itself
// unless a Commit released the claim. It may be called more than once.
func (h *Holder) Close() {
	h.over(ErrReleased)
	<-h.done
}

func (h *Holder) submit(ctx context.Context, do func(context.Context) error) error {
	j := job{ctx, do, make(chan error, 1)}
	select {
	case h.work <- j:
		return <-j.out
	case <-h.done:
		if err := context.Cause(h.ctx); errors.Is(err, ErrReleased) || errors.Is(err, ErrStale) || errors.Is(err, ErrLapsed) {
			return err
		}
		// The attempt's context ended, not the claim: a last write on its own
		// context is still made, and still checked by the store.
		h.last.Lock()
		defer h.last.Unlock()
		return do(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h *Holder) run() {
	defer close(h.done)
	// Armed apart from the work, so that a busy holder looks as often as an idle one.
	tick := h.svc.Clock.After(h.svc.Times.Poll)
	for {
		select {
		case j := <-h.work:
			j.out <- j.do(j.ctx)
		case <-h.ctx.Done():
			return
		case <-tick:
			h.look()
			tick = h.svc.Clock.After(h.svc.Times.Poll)
		}
	}
}

// look renews the lease when it is due, else reads the hot item. Errors of the
// store are left to the next look: what they cost is trust (see Fresh).
func (h *Holder) look() {
	h.mu.Lock()
	age := h.svc.Clock.Now().Sub(h.renewed)
	h.mu.Unlock()
	if age >= h.svc.Times.Renew {
		if err := h.commit(h.ctx, Tx{}); err != nil && h.ctx.Err() == nil {
			h.svc.Log.Warn("renewal failed", "session", h.ref.Hash(), "err", err)
		}
		return
	}
	m, err := session.LoadMeta(h.ctx, h.svc.Store, h.ref)
	if err != nil {
		return
	}
	if m.Token != h.token || m.Owner != h.owner {
		h.stale()
		return
	}
	h.saw(m)
}

func (h *Holder) saw(m session.Meta) {
	h.mu.Lock()
	if h.meta.WriteID != m.WriteID {
		h.unsure = nil
	}
	h.meta = m
	f := h.wake
	h.mu.Unlock()
	if f != nil {
		f(m)
	}
}

func (h *Holder) stale() {
	if h.ctx.Err() == nil {
		h.svc.Log.Warn("claim lost", "session", h.ref.Hash(), "token", h.token, "counter", "stale_writer")
	}
	h.over(ErrStale)
}

func (h *Holder) commit(ctx context.Context, tx Tx) error {
	if err := context.Cause(h.ctx); errors.Is(err, ErrStale) || errors.Is(err, ErrReleased) {
		return err
	}
	began := h.svc.Clock.Now()
	op, wid := h.metaOp(tx, began)
	h.mu.Lock()
	window := h.svc.Times.Trust - began.Sub(h.renewed)
	h.mu.Unlock()
	ops := append([]table.Op{op}, tx.Ops...)
	ops[0].ReturnNew = len(ops) == 1
	res, err := Write(ctx, h.svc.Store, h.svc.Clock, max(window, time.Second), ops...)
	if ce, ok := table.Failed(err); ok {
		if ce.Op > 0 {
			return &table.ConditionError{Op: ce.Op - 1, Found: ce.Found, Ambiguous: ce.Ambiguous}
		}
		m := session.DecodeMeta(h.ref, ce.Found)
		lost := h.lost(m.WriteID)
		switch mine := m.Token == h.token && m.Owner == h.owner; {
		case m.WriteID == wid: // applied, the answer was lost (C5)
		case lost && mine: // an earlier write was applied after all: this one comes behind it
			h.saw(m)
			return h.commit(ctx, tx)
		case lost:
			h.over(ErrReleased) // that earlier write was the release
			return ErrReleased
		case !mine:
			h.stale()
			return ErrStale
		default:
			h.saw(m)
			return &RefusedError{m}
		}
	} else if err != nil {
		h.mu.Lock()
		h.unsure = append(h.unsure, wid)
		h.mu.Unlock()
		return fmt.Errorf("commit: %w", err)
	}
	h.wrote(tx, wid, began, res.New)
	if tx.Release {
		h.over(ErrReleased)
	}
	return nil
}

// lost says whether wid is of an earlier write of this holder that got no answer.
func (h *Holder) lost(wid string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.unsure, wid)
}

// wrote keeps the holder's picture of the hot item after a commit.
func (h *Holder) wrote(tx Tx, wid string, began time.Time, now *table.Item) {
	h.mu.Lock()
	h.renewed, h.unsure = began, nil
	h.meta.WriteID = wid
	if tx.Head > 0 {
		h.meta.Head = tx.Head
	}
	h.mu.Unlock()
	if now != nil {
		h.saw(session.DecodeMeta(h.ref, now))
	}
}

func (h *Holder) metaOp(tx Tx, now time.Time) (op table.Op, wid string) {
	wid = h.svc.NewID()
	h.mu.Lock()
	prev := h.meta.WriteID
	h.mu.Unlock()
	op = table.Op{
		Kind: table.Update, Key: h.ref.MetaKey(),
		// The holder alone writes the write id, so "the one before" makes each of
		// its writes happen once however often it is sent.
		If: table.All(
			table.Equal(table.P(session.AttrToken), h.token),
			table.Equal(table.P(session.AttrOwner), h.owner),
			table.Equal(table.P(session.AttrWrite), prev)),
		Set:   append([]table.SetOp{{Path: table.P(session.AttrWrite), Value: wid}}, tx.Set...),
		Add:   tx.Add,
		AddTo: tx.AddTo, TakeFrom: tx.TakeFrom,
		Remove: append([]table.Path(nil), tx.Remove...),
	}
	if tx.If != nil {
		op.If = table.All(op.If, tx.If)
	}
	if tx.Head > 0 {
		op.Set = append(op.Set, table.SetOp{Path: table.P(session.AttrHead), Value: tx.Head})
	}
	lease := now.Add(h.svc.Times.Lease)
	if tx.Release {
		lease = now // says since when nobody has the claim, see lane.Sweep
		op.Remove = append(op.Remove, table.P(session.AttrOwner), table.P(session.AttrNest))
	}
	op.Set = append(op.Set, table.SetOp{Path: table.P(session.AttrLease), Value: lease.UnixMilli()})
	h.addProgress(&op)
	return op, wid
}
