// Package claim is the right to write one session.
//
// Guarantees: a claim is a fencing token that only grows and an owner, both in
// the session's hot item; every write of a holder checks the two in the same
// transaction that it makes (C2), so a superseded writer, or a late goroutine of
// an attempt that released, changes nothing. The lease says when somebody else
// may take over, never whether a write is right. A holder whose last renewal is
// too old starts nothing new (C3). All writes of one holder go through one
// goroutine, which ends with Release or with the loss of the claim.
package claim

import (
	"cmp"
	"time"
)

// Times are the durations of the rules C1, C3, A2, R3 and W2 in one place. The
// zero value of each is its default.
type Times struct {
	Lease   time.Duration // 30 s: how long a claim holds without renewal
	Renew   time.Duration // 10 s: how often its holder renews it
	Slack   time.Duration // 5 s: how long over a lease must be before a takeover
	Trust   time.Duration // 20 s: age of the last renewal beyond which nothing is started
	Poll    time.Duration // 700 ms: how often a holder looks for marks and mail
	Answer  time.Duration // 10 s: how long one answerer has for a waiter
	Orphan  time.Duration // 20 s: without a live claim, work gets a wake-up from the watchdog
	Acquire time.Duration // 60 s: how long a command waits for the claim
	Retry   time.Duration // 5 s: how long a gateway retries conflicts
	Stalls  int64         // 3: attempts without progress before a run is ended
}

// WithDefaults fills the zero values.
func (t Times) WithDefaults() Times {
	t.Lease = cmp.Or(t.Lease, 30*time.Second)
	t.Renew = cmp.Or(t.Renew, t.Lease/3)
	t.Slack = cmp.Or(t.Slack, t.Lease/6)
	t.Trust = cmp.Or(t.Trust, t.Lease*2/3)
	t.Poll = cmp.Or(t.Poll, 700*time.Millisecond)
	t.Answer = cmp.Or(t.Answer, 10*time.Second)
	t.Orphan = cmp.Or(t.Orphan, t.Lease*2/3)
	t.Acquire = cmp.Or(t.Acquire, time.Minute)
	t.Retry = cmp.Or(t.Retry, 5*time.Second)
	t.Stalls = cmp.Or(t.Stalls, 3)
	return t
}
