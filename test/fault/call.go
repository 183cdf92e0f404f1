package fault

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"laneway/shared/table"
)

// call is a call of a port that waits for the scheduler.
type call struct {
	p     *proc
	n     int
	what  string // for the timeline, and to order calls of one process
	point point  // named kill point, or empty
	ops   []table.Op
	kind  kind   // of a write
	key   string // of the session that it changes
	post  bool   // to a connection
	read  bool
	out   chan verdict
}

// verdict is what becomes of a call.
type verdict int

const (
	proceed  verdict = iota
	conflict         // nothing is written
	throttle         // nothing is done
	lostBefore
	lostAfter // it is done, its answer is an error
	gone410   // of a post
	slow      // of a post: it takes longer than its caller waits, and may have arrived
	killed
	cancelled // the caller's context ended
)

// park waits until the scheduler lets the call go on. The caller then does what it
// asked for, alone: nothing else moves until it waits again.
func (p *proc) park(ctx context.Context, c call) verdict {
	s := p.s
	s.mu.Lock()
	if p.dead {
		s.mu.Unlock()
		return killed
	}
	s.seq++
	c.p, c.n, c.out = p, s.seq, make(chan verdict, 1)
	s.parked = append(s.parked, &c)
	s.mu.Unlock()
	select {
	case v := <-c.out:
		return v
	case <-p.gone:
		return killed
	case <-ctx.Done():
		s.mu.Lock()
		s.parked = slices.DeleteFunc(s.parked, func(x *call) bool { return x == &c })
		s.mu.Unlock()
		if p.isDead() {
			return killed
		}
		return cancelled
	}
}

func (p *proc) isDead() bool {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.dead
}

// let lets a call go on.
func (s *Sim) let(c *call, v verdict) {
	s.mu.Lock()
	s.parked = slices.DeleteFunc(s.parked, func(x *call) bool { return x == c })
	s.sayf(c.p.name, "%s%s", c.what, [...]string{
		"", " -> CONFLICT", " -> THROTTLED", " -> LOST BEFORE", " -> DONE, ANSWER LOST", " -> GONE", " -> TOO SLOW", "", "",
	}[v])
	s.mu.Unlock()
	c.out <- v
}

// point is a named place at which a process can die or freeze.
type point string

// The kill points. Before a write means that it was not done, after it that it was and
// nobody in the process knows: the process dies where it asks for the next thing.
const (
	beforeAccept    point = "before accept"
	afterAccept     point = "after accept"
	afterSend       point = "after send"
	afterClaim      point = "after claim"
	midStream       point = "mid stream"
	afterToolEffect point = "after tool side effect"
	beforeLedger    point = "before ledger row"
	afterLedger     point = "after ledger row"
	beforeTerminal  point = "before terminal"
	afterTerminal   point = "after terminal"
	beforeSettled   point = "before settled"
	beforeAck       point = "before ack"
	inRenewal       point = "during renewal"
	beforeCommit    point = "before commit"
	afterCommit     point = "after commit"
	beforeSteer     point = "before steer"
	afterSteer      point = "after steer"
	beforeCheck     point = "before checkpoint"
	afterCheck      point = "after checkpoint"
	beforeCancel    point = "before cancel mark"
	afterCancel     point = "after cancel mark"
	beforeWaiter    point = "before waiter row"
	afterWaiter     point = "after waiter row"
	afterTake       point = "after waiter taken"
	beforeSweep     point = "before sweep's wake-up"
)

// Points lists them all.
func Points() []string {
	var out []string
	for _, p := range []point{
		beforeAccept, afterAccept, afterSend, afterClaim, midStream, afterToolEffect, beforeLedger, afterLedger, beforeTerminal,
		afterTerminal, beforeSettled, beforeAck, inRenewal, beforeCommit, afterCommit, beforeSteer, afterSteer, beforeCheck,
		afterCheck, beforeCancel, afterCancel, beforeWaiter, afterWaiter, afterTake, beforeSweep,
	} {
		out = append(out, string(p))
	}
	return out
}

// before and after are the points around each kind of write.
var around = map[kind]struct{ before, after point }{
	kAccept:    {beforeAccept, afterAccept},
	kSteer:     {beforeSteer, afterSteer},
	kClaim:     {"", afterClaim},
	kStarted:   {beforeLedger, afterLedger},
	kDone:      {beforeLedger, afterLedger},
	kCommit:    {beforeCommit, afterCommit},
	kTerminal:  {beforeTerminal, afterTerminal},
	kSettled:   {beforeSettled, ""},
	kRenew:     {inRenewal, inRenewal},
	kRelease:   {beforeCheck, afterCheck},
	kCancel:    {beforeCancel, afterCancel},
	kCutoff:    {beforeCancel, afterCancel},
	kWaiter:    {beforeWaiter, afterWaiter},
	kTake:      {"", afterTake},
	kSweep:     {"", beforeSweep},
	kEndQueued: {beforeCancel, afterCancel},
}

// describe says what a write is, in words of the timeline.
func describe(k kind, ops []table.Op) string {
	var b strings.Builder
	b.WriteString(string(k))
	for i, op := range ops {
		if i == 4 {
			fmt.Fprintf(&b, " +%d", len(ops)-i)
			break
		}
		b.WriteByte(' ')
		b.WriteString(shortKey(op.Key))
	}
	return b.String()
}

func shortKey(k table.Key) string {
	pk := k.PK
	if i := strings.LastIndexAny(pk, "#:"); i >= 0 {
		pk = pk[i+1:]
	}
	sk := k.SK
	if strings.HasPrefix(sk, "W#") {
		sk = "W"
	}
	if strings.Contains(k.PK, "#T#") {
		pk = "row"
	}
	return pk + "/" + strings.TrimLeft(sk, "0")
}
