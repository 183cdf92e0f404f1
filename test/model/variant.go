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
	ForwardedAsAccept                   // forwarded under A1's deduplication id
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
	SteerIntoEnding                     // a steer goes to a run that is to end
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
	// In names the scenario whose search finds what it breaks.
	In string
	// Breaks is what is found.
	Breaks code
}

// Variants are wrong rules. Each is caught: a clause whose loss nobody notices is
// either not needed or not checked.
func Variants() []Variant {
	return []Variant{
		{"A1", AcceptNotAbsent, "AcceptNotAbsent", "the record is put whether or not there is one", "lost", begunAgain},
		{"A1", KeyLate, "KeyLate", "the index key is set after the transaction", "lost", unindexed},
		{"A1", WakeFirst, "WakeFirst", "the wake-up goes before the transaction", "one", stall},
		{"A2", ReplyFirst, "ReplyFirst", "the reply goes before the transaction", "lost", lostAccept},
		{"A2", NoSweep, "NoSweep", "there is no watchdog", "send", stuck},
		{"A2", SweepInGroup, "SweepInGroup", "the watchdog uses the session's group", "blocked", stuck},
		{"A3", AcceptNotAbsent, "AcceptNotAbsent", "a repeat with a known key is accepted again", "send", begunAgain},
		{"A4", UserRowAgain, "UserRowAgain", "each attempt writes the message", "lost", doubled},
		{"Wake-up", LiveFirst, "LiveFirst", "a live claim is looked at before unsettled runs", "abort", stall},
		{"Wake-up", AnyNext, "AnyNext", "not the lowest sequence", "order", order},
		{"Wake-up", AnyLane, "AnyLane", "the next run is begun whatever its lane", "lanes", otherLane},
		{"Wake-up", ForwardedAsAccept, "ForwardedAsAccept", "forwarded under the accept's deduplication id", "lanes2", stall},
		{"Wake-up", SleepIgnoresMarks, "SleepIgnoresMarks", "a sleeper sleeps on though it is to stop", "sleep", stuck},
		{"Wake-up", RefusedIsAcked, "RefusedIsAcked", "a claim that failed is acknowledged", "abort", stall},
		{"C1", ClaimNoToken | ClaimNoMember, "ClaimNoToken, ClaimNoMember", "a claim holds on the lease alone", "order", begunAgain},
		{"C1", ClaimNoLease, "ClaimNoLease", "a live claim is taken over", "one", lostHold},
		{"C1", ClaimNoCutoff, "ClaimNoCutoff", "a claim does not hold on the cutoff", "stop", stopped},
		{"C1", NestedFrees, "NestedFrees", "the inner release frees the claim", "nested", lostHold},
		{"C2", WriteUnfenced, "WriteUnfenced", "commits check neither token nor owner", "one", fenced},
		{"C2", WriteNoOwner | LostIsNo, "WriteNoOwner, LostIsNo", "commits of an attempt that has released", "lost", secondEnd},
		{"C3", StaleStarts, "StaleStarts", "a tool starts under a claim that is not fresh", "one", lapsed},
		{"C4", CommandWaitless, "CommandWaitless", "a command does not wait for the claim", "inject", lostHold},
		{"C4", ReleaseSilent, "ReleaseSilent", "a command releases and does not look again", "inject", stall},
		{"C4", InjectBetween, "InjectBetween", "a command writes between a call and its result", "inject", invalid},
		{"C4", ResetBlind, "ResetBlind", "a reset under a run that has begun", "reset", resetUnder},
		{"C5", LostIsNo, "LostIsNo", "a lost answer is taken for a failure", "lost", invalid},
		{"C6", ConflictIsNo, "ConflictIsNo", "a conflict is taken for a failed condition", "abort", stall},
		{"C7", EndPendingBlind, "EndPendingBlind", "a pending run is ended wherever it is by now", "abort", secondEnd},
		{"C7", EndPendingSilent, "EndPendingSilent", "a pending run that is ended does not become unsettled", "abort", stuck},
		{"C7", MarkUnnamed, "MarkUnnamed", "the mark to stop names no run", "abort", wrongStop},
		{"C7", CutoffNotRead, "CutoffNotRead", "pending runs below the cutoff count as any", "stop", stopped},
		{"C7", StopSilent, "StopSilent", "who stops sends no wake-up", "stopsleep", stall},
		{"C7", StopIgnoresMail, "StopIgnoresMail", "a stop that finds only mail waiting cuts nothing", "stopsteer", stopped},
		{"L1", ToolsFirst, "ToolsFirst", "the tools run before their message is stored", "one", twice},
		{"L2", NoLedger, "NoLedger", "no row says that a call has begun", "one", twice},
		{"L2", StartedRuns, "StartedRuns", "a call found begun runs again", "one", twice},
		{"L2", LeaveBeforeTools, "LeaveBeforeTools", "a checkpoint between the message and its begun calls", "one", unknown},
		{"L3", OkIgnoresMail, "OkIgnoresMail", "ok though a message waits in the mailbox", "steer", stuck},
		{"L3", OkIgnoresMark, "OkIgnoresMark", "ok though a mark to stop is there", "abort", stopped},
		{"L3", SteerBlind, "SteerBlind", "a steer goes to a run that may have ended", "steer", stuck},
		{"L3", SteerIntoEnding, "SteerIntoEnding", "a steer goes to a run that is to end", "intsteer", stopped},
		{"L3", NoMoveBack, "NoMoveBack", "undelivered steers stay in the mailbox", "steerabort", stuck},
		{"L3", MovedAnew, "MovedAnew", "they go back under a new sequence", "steerabort", order},
		{"L3", TakenForgotten, "TakenForgotten", "delivered runs do not become unsettled", "steer", stuck},
		{"L3", SubscribersIgnored, "SubscribersIgnored", "the terminal holds on no subscription", "subscribe", unheard},
		{"L4", EndUnfenced, "EndUnfenced", "the terminal is written by whoever thinks so", "lost", secondEnd},
		{"L5", HolderSettles, "HolderSettles", "only the terminal's holder settles", "order", stuck},
		{"L5", AckFirst, "AckFirst", "the acknowledgement goes before the settling", "lost", stall},
		{"L5", NoLook, "NoLook", "the settler does not look for what is left", "lanes", stall},
		{"L5", ClearedWhole, "ClearedWhole", "unsettled is cleared as a whole", "settle", untold},
		{"L5", KeyStale, "KeyStale", "the index key goes on what was read before", "order", unindexed},
		{"L5", SettlersUnordered, "SettlersUnordered", "settlers are not ordered by a count", "settle", stuck},
		{"L5", HeldRemoved, "HeldRemoved", "what another one is telling is taken off too", "settle", untold},
		{"L5", HeldNudged, "HeldNudged", "what another one is telling is looked at again at once", "settle", storm},
		{"R1", SleepBlind, "SleepBlind", "sleeping holds on no mark", "sleep", stall},
		{"R1", LeaveSilent, "LeaveSilent", "a checkpoint sends no wake-up", "one", stall},
		{"R2", CutForEver, "CutForEver", "a call that was cut is always made again", "long", endless},
		{"R3", NoLimit, "NoLimit", "attempts without progress are not counted", "poison", endless},
		{"W1", RowBeforeTimer, "RowBeforeTimer", "the wait's row goes before its timer", "wait", stuck},
		{"W2", ReadBeforeRow, "ReadBeforeRow", "the record is not read behind the row", "wait", stall},
		{"W2", RowNotTaken, "RowNotTaken", "a row is answered without being taken", "wait", answeredTwice},
		{"W2", AnswerNotStored, "AnswerNotStored", "the answer is not written into the row", "wait", otherAnswer},
		{"K1", StopReadBefore, "StopReadBefore", "the stop mark is read before, and no condition", "stop", stopped},
		{"O1", SteerOvertakes, "SteerOvertakes", "a steer goes before messages that wait", "steer", order},
	}
}
