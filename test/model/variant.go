package model

// Flaw is one clause of the rules taken away or turned into what it must not be.
type Flaw uint64

// The flaws, each named after what the code would do.
const (
	AcceptNotAbsent    Flaw = 1 << iota // the record is put whether or not there is one
	KeyLate                             // the index key is set after the transaction
	WakeFirst                           // the wake-up goes before the transaction
	ReplyFirst                          // the reply goes before the transaction
	NoSweep                             // there is no watchdog
	SweepInGroup                        // it uses the session's group
	UserRowAgain                        // each attempt writes the message
	LiveFirst                           // a live claim is looked at before unsettled runs
	AnyNext                             // not the lowest sequence
	AnyLane                             // the next run is begun whatever its lane
	NudgedAsAccept                      // what is left is woken under A1's deduplication id
	SleepIgnoresMarks                   // a sleeper sleeps on though it is to stop
	RefusedIsAcked                      // a claim that failed is acknowledged
	ClaimNoToken                        // the claim does not hold on the token that was read
	ClaimNoMember                       // nor on the run being in the list
	ClaimNoLease                        // nor on the lease
	ClaimNoCutoff                       // nor on the cutoff
	NestedFrees                         // the inner release frees the claim
	WriteUnfenced                       // commits check neither token nor owner
	WriteNoOwner                        // commits do not check the owner
	StaleStarts                         // a tool starts under a claim that is not fresh
	CommandWaitless                     // a command does not wait for the claim
	ReleaseSilent                       // a command releases and does not look again
	InjectBetween                       // a command writes between a call and its result
	ResetBlind                          // a reset does not look whether a run is active
	LostIsNo                            // a lost answer is taken for a failure
	ConflictIsNo                        // a conflict is taken for a failed condition
	EndPendingBlind                     // a pending run is ended wherever it is by now
	EndPendingSilent                    // it does not become unsettled
	MarkUnnamed                         // the mark to stop names no run
	CutoffNotRead                       // pending runs below the cutoff count as any
	StopSilent                          // who stops sends no wake-up
	StopIgnoresMail                     // a stop that finds only mail waiting cuts nothing
	ToolsFirst                          // the tools run before their message is stored
	NoLedger                            // no row says that a call has begun
	StartedRuns                         // a call found begun runs again
	LeaveBeforeTools                    // a checkpoint between the message and its begun calls
	OkIgnoresMail                       // ok though a message waits in the mailbox
	OkIgnoresMark                       // ok though a mark to stop is there
	SteerBlind                          // a steer goes to a run that may have ended
	SteerOvertakes                      // a steer goes before messages that wait
	NoMoveBack                          // undelivered steers stay in the mailbox
	MovedAnew                           // they go back under a new sequence
	TakenForgotten                      // delivered runs do not become unsettled
	SubscribersIgnored                  // the terminal holds on no subscription
	EndUnfenced                         // the terminal is written by whoever thinks so
	HolderSettles                       // only the terminal's holder settles
	AckFirst                            // the acknowledgement goes before the settling
	NoLook                              // the settler does not look for what is left
	ClearedWhole                        // unsettled is cleared as a whole
	KeyStale                            // the index key goes on what was read before
	SettlersUnordered                   // settlers are not ordered by a count
	HeldRemoved                         // what another one is telling is taken off too
	HeldNudged                          // it is looked at again at once
	SleepBlind                          // sleeping holds on no mark
	LeaveSilent                         // a checkpoint sends no wake-up
	CutForEver                          // a call that was cut is always made again
	NoLimit                             // attempts without progress are not counted
	RowBeforeTimer                      // the wait's row goes before its timer
	ReadBeforeRow                       // the record is not read behind the row
	RowNotTaken                         // a row is answered without being taken
	AnswerNotStored                     // the answer is not written into the row
	StopReadBefore                      // the stop mark is read before, and no condition
)

// Variant is the rules with a flaw. The zero value is the rules as they are.
type Variant struct {
	Rule  string
	Flaws Flaw
	Name  string
	Text  string
	In    string // the scenario whose search finds what it breaks
}

// Variants are wrong rules. Each is caught: a clause whose loss nobody notices is
// either not needed or not checked.
func Variants() []Variant {
	return []Variant{
		{"A1", AcceptNotAbsent, "AcceptNotAbsent", "the record is put whether or not there is one", "lost"},
		{"A1", KeyLate, "KeyLate", "the index key is set after the transaction", "lost"},
		{"A1", WakeFirst, "WakeFirst", "the wake-up goes before the transaction", "two"},
		{"A2", ReplyFirst, "ReplyFirst", "the reply goes before the transaction", "lost"},
		{"A2", NoSweep, "NoSweep", "there is no watchdog", "send"},
		{"A2", SweepInGroup, "SweepInGroup", "the watchdog uses the session's group", "blocked"},
		{"A3", AcceptNotAbsent, "AcceptNotAbsent", "a repeat with a known key is accepted again", "send"},
		{"A4", UserRowAgain, "UserRowAgain", "each attempt writes the message", "lost"},
		{"Wake-up", LiveFirst, "LiveFirst", "a live claim is looked at before unsettled runs", "abortasleep"},
		{"Wake-up", AnyNext, "AnyNext", "not the lowest sequence", "order"},
		{"Wake-up", AnyLane, "AnyLane", "the next run is begun whatever its lane", "lanes"},
		{"Wake-up", NudgedAsAccept, "NudgedAsAccept", "what is left is woken under the accept's deduplication id", "twolanes"},
		{"Wake-up", SleepIgnoresMarks, "SleepIgnoresMarks", "a sleeper sleeps on though it is to stop", "sleep"},
		{"Wake-up", RefusedIsAcked | StopSilent, "RefusedIsAcked, StopSilent", "a claim that failed is acknowledged, and who stops says nothing", "abortone"},
		{"C1", ClaimNoToken | ClaimNoMember, "ClaimNoToken, ClaimNoMember", "a claim holds on the lease alone", "order"},
		{"C1", ClaimNoLease, "ClaimNoLease", "a live claim is taken over", "one"},
		{"C1", ClaimNoCutoff, "ClaimNoCutoff", "a claim does not hold on the cutoff", "stop"},
		{"C1", NestedFrees, "NestedFrees", "the inner release frees the claim", "nested"},
		{"C2", WriteUnfenced, "WriteUnfenced", "commits check neither token nor owner", "one"},
		{"C2", WriteNoOwner, "WriteNoOwner", "commits do not check the owner", "plain"},
		{"C3", StaleStarts, "StaleStarts", "a tool starts under a claim that is not fresh", "one"},
		{"C4", CommandWaitless, "CommandWaitless", "a command does not wait for the claim", "injectone"},
		{"C4", ReleaseSilent, "ReleaseSilent", "a command releases and does not look again", "injectone"},
		{"C4", InjectBetween, "InjectBetween", "a command writes between a call and its result", "inject"},
		{"C4", ResetBlind, "ResetBlind", "a reset under a run that has begun", "reset"},
		{"C5", LostIsNo, "LostIsNo", "a lost answer is taken for a failure", "lost"},
		{"C6", ConflictIsNo, "ConflictIsNo", "a conflict is taken for a failed condition", "abortone"},
		{"C7", EndPendingBlind, "EndPendingBlind", "a pending run is ended wherever it is by now", "abortone"},
		{"C7", EndPendingSilent, "EndPendingSilent", "a pending run that is ended does not become unsettled", "abortone"},
		{"C7", MarkUnnamed, "MarkUnnamed", "the mark to stop names no run", "abortone"},
		{"C7", CutoffNotRead, "CutoffNotRead", "pending runs below the cutoff count as any", "stop"},
		{"C7", StopSilent, "StopSilent", "who stops sends no wake-up", "stopsleep"},
		{"C7", StopIgnoresMail, "StopIgnoresMail", "a stop that finds only mail waiting cuts nothing", "stopsteer"},
		{"L1", ToolsFirst, "ToolsFirst", "the tools run before their message is stored", "one"},
		{"L2", NoLedger, "NoLedger", "no row says that a call has begun", "one"},
		{"L2", StartedRuns, "StartedRuns", "a call found begun runs again", "one"},
		{"L2", LeaveBeforeTools, "LeaveBeforeTools", "a checkpoint between the message and its begun calls", "plain"},
		{"L3", OkIgnoresMail, "OkIgnoresMail", "ok though a message waits in the mailbox", "steerone"},
		{"L3", OkIgnoresMark, "OkIgnoresMark", "ok though a mark to stop is there", "abortone"},
		{"L3", SteerBlind, "SteerBlind", "a steer goes to a run that may have ended", "steerone"},
		{"L3", NoMoveBack, "NoMoveBack", "undelivered steers stay in the mailbox", "steerabort"},
		{"L3", MovedAnew, "MovedAnew", "they go back under a new sequence", "steerabort"},
		{"L3", TakenForgotten, "TakenForgotten", "delivered runs do not become unsettled", "steerone"},
		{"L3", SubscribersIgnored, "SubscribersIgnored", "the terminal holds on no subscription", "subscribe"},
		{"L4", EndUnfenced, "EndUnfenced", "the terminal is written by whoever thinks so", "one"},
		{"L5", HolderSettles, "HolderSettles", "only the terminal's holder settles", "order"},
		{"L5", AckFirst, "AckFirst", "the acknowledgement goes before the settling", "plain"},
		{"L5", NoLook, "NoLook", "the settler does not look for what is left", "twolanes"},
		{"L5", ClearedWhole, "ClearedWhole", "unsettled is cleared as a whole", "settle"},
		{"L5", KeyStale, "KeyStale", "the index key goes on what was read before", "order"},
		{"L5", SettlersUnordered, "SettlersUnordered", "settlers are not ordered by a count", "settle"},
		{"L5", HeldRemoved, "HeldRemoved", "what another one is telling is taken off too", "settle"},
		{"L5", HeldNudged, "HeldNudged", "what another one is telling is looked at again at once", "settle"},
		{"R1", SleepBlind, "SleepBlind", "sleeping holds on no mark", "sleep"},
		{"R1", LeaveSilent, "LeaveSilent", "a checkpoint sends no wake-up", "plain"},
		{"R2", CutForEver, "CutForEver", "a call that was cut is always made again", "long"},
		{"R3", NoLimit, "NoLimit", "attempts without progress are not counted", "poison"},
		{"W1", RowBeforeTimer, "RowBeforeTimer", "the wait's row goes before its timer", "wait"},
		{"W2", ReadBeforeRow, "ReadBeforeRow", "the record is not read behind the row", "wait"},
		{"W2", RowNotTaken, "RowNotTaken", "a row is answered without being taken", "wait"},
		{"W2", AnswerNotStored, "AnswerNotStored", "the answer is not written into the row", "wait"},
		{"K1", StopReadBefore, "StopReadBefore", "the stop mark is read before, and no condition", "stop"},
		{"O1", SteerOvertakes, "SteerOvertakes", "a steer goes before messages that wait", "steer"},
	}
}
