package model

// Bounds of the model. They are small on purpose: each rule that a clause stands for
// breaks with two or three runs, two runners and a few faults.
const (
	maxRuns  = 3
	maxSlots = 2
	maxLanes = 2
	maxCalls = 2
)

// State is everything: the tables, the queues, every process, what is left of the
// faults, and what the checks remember. It holds bytes only, so that two states are
// equal exactly when they are the same.
//
// A run is named by its index; where "none" must be told from run 0, the index is one
// higher. Sets of runs are bits.
type State struct {
	// META
	token, owner, lease, nest uint8 // lease: 1 holds, 0 over by more than the slack
	active, attempt, stalled  uint8
	asleep                    uint8
	seq                       uint8
	pend, mail, uns           uint8
	setN                      uint8
	cutoff, cancel            uint8
	stops, busy, subRev       uint8

	runs [maxRuns]record

	// Queues: the session's own group in each lane, and messages in groups that are used
	// once; behind them the timers that bring wake-ups.
	group, inFlight [maxLanes]uint8 // inFlight: see free, received, orphan
	pool, poolDead  [maxLanes]uint8
	timer           [maxLanes]uint8
	alarm           uint8

	slots [maxSlots]slot
	gates [maxRuns]gate
	abort aborter
	stop  uint8 // pc of the session-wide stop
	cmd   command
	wait  waiter
	sub   uint8 // somebody who subscribes while a run is active: 0 not yet, 1 has, 2 found none

	left    [nFaults]uint8 // faults that may still come
	faulty  uint8          // one has come
	polls   uint8          // conflicts that may still come: no fault, they happen every day
	banned  uint8          // ghost: runs that a stop, whose sender was told so, covers
	violate code           // ghost: what the last transition broke
}

// record is STATUS of a run, with its rows in transcript and ledger.
type record struct {
	st, out, seq uint8
	acc          uint8 // ghost: when it was accepted
	into         uint8 // the run that took its message
	user         uint8 // ghost: user rows written, two are too many
	prog         uint8 // rows of its step: see progNone
	led          [maxCalls]uint8
	eff          [maxCalls]uint8 // ghost: side effects
	org          uint8           // origin lease: 1 holds
	told         uint8           // ghost: frames to the caller, counted to two
	sent         uint8           // A1's deduplication id is used
}

// States of a record.
const (
	absent = iota
	pending
	steered
	delivered
	ended
)

// Outcomes.
const (
	none = iota
	okay
	aborted
	failed
	expired // of a wait only
)

// Rows of the one step with tool calls that a run may have.
const (
	progNone  = iota
	progCalls // the assistant's message is there, its calls are open
	progDone  // the results are there
)

// States of a ledger row.
const (
	ledNone = iota
	ledPlanned
	ledStarted
	ledDone
)

// Heads of a session group.
const (
	free     = iota
	received // by a receiver that lives
	orphan   // by one that is dead: the group waits until it is visible again
)

// slot is one invocation of a runner.
type slot struct {
	pc   pc
	msg  uint8 // 0 none; 1+lane: of the session's group; 3+lane: of a group used once
	lane uint8
	tok  uint8
	own  uint8
	run  uint8 // of the claim, index+1
	kind uint8 // outcome of the end that it is about to write
	see  uint8 // set of runs that was read: mailbox, pending
	todo uint8 // runs to settle
	done uint8
	held uint8
	cur  uint8 // run being told, or tool call
	n    uint8 // setN as read
	seq  uint8 // accept sequence as read; idle says whether it counts
	flag uint8
	skip uint8 // tool calls that have a result
}

const (
	fFrozen  = 1 << iota
	fApplied // the last write was applied, its answer is lost
	fOld     // the last renewal is older than the holder may trust
	fSubs    // the stream knows the subscriber
	fIdle    // META was read with nothing left in it
	fLater   // some runs stay unsettled, their wake-up is on its way
	fTerm    // settles what it ended itself
	fThawed  // ghost: it was frozen for long enough to lose its claim
)

func (s *slot) has(f uint8) bool { return s.flag&f != 0 }

// gate is a gateway at work on one call.
type gate struct {
	pc      uint8
	act     uint8 // the run into which it would steer, as read, index+1
	seq     uint8
	flag    uint8 // fApplied; gSaid: the client was told "accepted"; gSawStop
	repeats uint8
}

// aborter is chat.abort of one run.
type aborter struct {
	pc, st, do, flag uint8
}

// command is an inject or a reset under the claim.
type command struct {
	pc, tok, own, flag uint8
}

// waiter is agent.wait, its row, its timer and the notifier.
type waiter struct {
	pc    uint8 // of the gateway
	row   uint8 // see rowNone
	cont  uint8 // answer in the row
	lease uint8
	timer uint8
	npc   uint8 // of the notifier
	ncont uint8
	gcont uint8
	first uint8 // ghost: what was posted first
	posts uint8 // ghost: frames, counted to two
}

func bit(r uint8) uint8 { return 1 << r }

func (s *State) runSeq(r uint8) uint8 { return s.runs[r].seq }

// cut are the pending runs at or below the cutoff.
func (s *State) cut() (set uint8) {
	for r := range uint8(maxRuns) {
		if s.pend&bit(r) != 0 && s.runSeq(r) <= s.cutoff {
			set |= bit(r)
		}
	}
	return set
}

// lowest is the pending run that is next, index+1.
func (s *State) lowest() (next uint8) {
	for r := range uint8(maxRuns) {
		if s.pend&bit(r) == 0 || s.runSeq(r) <= s.cutoff {
			continue
		}
		if next == 0 || s.runSeq(r) < s.runSeq(next-1) {
			next = r + 1
		}
	}
	return next
}

func (s *State) owned() bool { return s.owner != 0 && s.lease == 1 }

// marked says whether the active run is to end.
func (s *State) marked() bool {
	return s.active != 0 && (s.cancel == s.active || s.runSeq(s.active-1) <= s.cutoff)
}

// took are the runs whose messages were delivered into r.
func (s *State) took(r uint8) (set uint8) {
	for i := range uint8(maxRuns) {
		if s.runs[i].st == delivered && s.runs[i].into == r+1 {
			set |= bit(i)
		}
	}
	return set
}

func first(set uint8) uint8 {
	for r := range uint8(8) {
		if set&bit(r) != 0 {
			return r
		}
	}
	return 8
}
