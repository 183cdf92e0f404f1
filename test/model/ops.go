package model

// op names a transition.
type op uint8

const (
	opReadSession op = iota
	opAccept
	opAcceptRefused
	opAcceptStopped
	opKnown
	opSteer
	opSteerRefused
	opSendAccept
	opSendFailed
	opRepeat
	opReplyEarly
	opWakeEarly
	opKeyLate
	opLate
	opStopReadsRecord
	opStopReadsSession
	opCancel
	opWithdraw
	opEndPending
	opStopRefused
	opStopAll
	opNudgeStop
	opCommand
	opBusy
	opNest
	opUnnest
	opCommandWrites
	opCommandStale
	opRelease
	opLookReleased
	opNudgeReleased
	opSubscribe
	opReceive
	opForward
	opStart
	opResume
	opClaimRefused
	opAnswerFound
	opConflict
	opStale
	opSeesMark
	opSeesMail
	opLapsed
	opModel
	opModelShort
	opShort
	opCut
	opTooLong
	opSleeps
	opStoreFails
	opPoison
	opDeliver
	opDeliverRefused
	opCalls
	opPlan
	opLedger
	opBegin
	opFresh
	opNotFresh
	opEffect
	opResult
	opResults
	opReadMail
	opTerminalOK
	opTerminalOKRefused
	opTerminal
	opTerminalRefused
	opLeave
	opNudgeCheckpoint
	opSleep
	opSleepRefused
	opAlarm
	opGiveUp
	opReturn
	opAck
	opEndCut
	opEndCutRefused
	opReadUnsettled
	opLease
	opHeld
	opTellCaller
	opTakeRow
	opPostRow
	opDeleteRow
	opReadSettled
	opNudgeSettled
	opRemove
	opRemoveRefused
	opDecideFree
	opWaitLooks
	opWaitTimer
	opWaitRow
	opWaitLooksAgain
	opWaitTakes
	opWaitReplies
	opDeadline
	opNotifierTakes
	opNotifierPosts
	opNotifierDeletes
	opTimer
	opWakeTime
	opLeaseOver
	opOriginOver
	opRowOver
	opVisible
	opThaw
	opThawLate
	opSweep
	opCrash
	opFreeze
	opGatewayCrash
	opNotifierCrash
	opCommandFreeze
	opCommandThaw
	opDuplicate
)

// transition is an op in words, and in the code: Fn names the function that makes it,
// as package.Function or package.Type.Method under shared; "" is what no code does:
// the world, or a variant.
type transition struct {
	class class
	text  string
	fn    string
}

var ops = [...]transition{
	opReadSession:       {step, "gateway reads META", "lane.Service.Steer"},
	opAccept:            {step, "gateway: the accept's transaction", "lane.Service.acceptOps"},
	opAcceptRefused:     {step, "gateway: the accept is refused, it decides again", "lane.Service.Accept"},
	opAcceptStopped:     {step, "gateway: a stop came first, the run is recorded as aborted", "lane.Service.acceptStopped"},
	opKnown:             {step, "gateway: the key is known", "lane.Service.known"},
	opSteer:             {step, "gateway: the steer's transaction", "lane.steerOps"},
	opSteerRefused:      {step, "gateway: the steer is refused, it decides again", "lane.Service.steerInto"},
	opSendAccept:        {step, "gateway sends the wake-up and replies", "lane.Service.wakeAccepted"},
	opSendFailed:        {fault, "THE SEND FAILS, the gateway replies", "lane.Service.wakeAccepted"},
	opRepeat:            {step, "the client asks again with its key", "lane.Service.Accept"},
	opReplyEarly:        {step, "gateway replies before its transaction", ""},
	opWakeEarly:         {step, "gateway sends the wake-up before its transaction", ""},
	opKeyLate:           {step, "gateway sets the index key", ""},
	opLate:              {step, "a late goroutine of the released attempt writes", ""},
	opStopReadsRecord:   {step, "abort reads the run's record", "lane.Service.StopRun"},
	opStopReadsSession:  {step, "abort reads META", "lane.Service.stopKnown"},
	opCancel:            {step, "abort puts the cancel mark", "lane.Service.cancel"},
	opWithdraw:          {step, "abort takes the steer out of the mailbox", "lane.Service.withdraw"},
	opEndPending:        {step, "abort ends the pending run", "lane.Service.endPending"},
	opStopRefused:       {step, "abort is refused", "lane.Service.StopRun"},
	opStopAll:           {step, "the session-wide stop writes its marks", "lane.Service.StopAll"},
	opNudgeStop:         {step, "whoever stopped sends a wake-up", "lane.Service.Nudge"},
	opCommand:           {step, "command takes the claim", "claim.Service.Command"},
	opBusy:              {step, "command: session busy", "claim.Service.Command"},
	opNest:              {step, "command takes the claim once more", "claim.Holder.Nest"},
	opUnnest:            {step, "command releases the inner hold", "claim.Holder.Release"},
	opCommandWrites:     {step, "command commits its row", "claim.Holder.Commit"},
	opCommandStale:      {step, "command was superseded", "claim.Holder.stale"},
	opRelease:           {step, "command releases the claim", "claim.Holder.Release"},
	opLookReleased:      {step, "command reads META behind it", "rpc.Gateway.underClaim"},
	opNudgeReleased:     {step, "command sends a wake-up", "lane.Service.Nudge"},
	opSubscribe:         {step, "a client subscribes to the session", "connection.sessionOp"},
	opReceive:           {step, "runner receives a wake-up, reads META and decides", "lane.Decide"},
	opForward:           {step, "runner sends a wake-up to the lane of the next run", "loop.Runner.Handle"},
	opStart:             {step, "runner claims and starts it", "claim.Service.Start"},
	opResume:            {step, "runner claims and resumes it", "claim.Service.Resume"},
	opClaimRefused:      {step, "runner's claim is refused, it decides again", "claim.Service.send"},
	opAnswerFound:       {step, "runner sends the write again and finds that it was applied", "claim.Holder.commit"},
	opConflict:          {step, "a conflict: the write is sent again", "claim.Write"},
	opStale:             {step, "runner finds itself superseded", "claim.Holder.stale"},
	opSeesMark:          {step, "runner sees the mark to stop", "loop.attempt.collect"},
	opSeesMail:          {step, "runner sees mail", "loop.attempt.collect"},
	opLapsed:            {step, "runner: its claim is not fresh, it ends the attempt", "loop.attempt.ready"},
	opModel:             {step, "runner reads META, the model answers", "loop.attempt.ask"},
	opModelShort:        {step, "the model answers, too little of the invocation is left for its calls", "loop.attempt.commitCalls"},
	opShort:             {step, "runner: too little of the invocation is left", "loop.attempt.ready"},
	opCut:               {step, "the end of the invocation cuts the model call", "loop.attempt.checkpoint"},
	opTooLong:           {step, "the model call was cut a second time: step too long", "loop.attempt.checkpoint"},
	opSleeps:            {step, "the run has nothing to do for a while", "loop.attempt.end"},
	opStoreFails:        {fault, "THE STORE FAILS the attempt", "loop.attempt.abandon"},
	opPoison:            {step, "the run kills its runner", ""},
	opDeliver:           {step, "runner commits what was steered in", "loop.attempt.deliverSome"},
	opDeliverRefused:    {step, "a message was withdrawn meanwhile", "loop.attempt.deliver"},
	opCalls:             {step, "runner commits the message with its calls, begun", "loop.attempt.commitCalls"},
	opPlan:              {step, "runner commits the message with its calls, planned", "loop.attempt.commitCalls"},
	opLedger:            {step, "runner reads the ledger of open calls", "loop.attempt.ledger"},
	opBegin:             {step, "runner commits that planned calls begin", "loop.attempt.start"},
	opFresh:             {step, "runner: its claim is fresh, the tool may start", "claim.Holder.Fresh"},
	opNotFresh:          {step, "runner: its claim is not fresh, the tool does not start", "loop.attempt.run"},
	opEffect:            {step, "THE TOOL ACTS", "loop.attempt.run"},
	opResult:            {step, "runner commits the result of one call", "loop.attempt.commitSome"},
	opResults:           {step, "runner commits the results as rows", "loop.attempt.commitResults"},
	opReadMail:          {step, "runner reads the mailbox", "loop.attempt.moveBack"},
	opTerminalOK:        {step, "runner commits the terminal: ok", "loop.attempt.tryTerminal"},
	opTerminalOKRefused: {step, "the terminal ok is refused", "loop.attempt.finishOK"},
	opTerminal:          {step, "runner commits the terminal: aborted or failed", "loop.attempt.tryTerminal"},
	opTerminalRefused:   {step, "that terminal is refused", "loop.attempt.terminal"},
	opLeave:             {step, "runner commits a checkpoint and releases", "loop.attempt.leave"},
	opNudgeCheckpoint:   {step, "runner sends the wake-up of the checkpoint", "loop.attempt.checkpoint"},
	opSleep:             {step, "runner puts the run to sleep and releases", "loop.attempt.leave"},
	opSleepRefused:      {step, "a run that is to stop does not sleep", "loop.attempt.checkpoint"},
	opAlarm:             {step, "runner arms the alarm", "lane.Service.NudgeLater"},
	opGiveUp:            {step, "runner releases the claim", "loop.attempt.abandon"},
	opReturn:            {step, "runner returns an error", "loop.attempt.abandon"},
	opAck:               {step, "runner acknowledges", "loop.Runner.Handle"},
	opEndCut:            {step, "settler ends a pending run that a stop covers", "lane.Service.endCut"},
	opEndCutRefused:     {step, "settler: somebody else has ended it", "lane.Service.endPending"},
	opReadUnsettled:     {step, "settler reads META again", "lane.Service.SettleFree"},
	opLease:             {step, "settler takes the telling of this end", "notify.Service.lease"},
	opHeld:              {step, "settler: another one is at it, a timer is armed", "lane.Service.finish"},
	opTellCaller:        {step, "settler tells the caller", "notify.Service.Final"},
	opTakeRow:           {step, "settler takes the waiter's row", "run.WaitRow.Take"},
	opPostRow:           {step, "settler posts what the row says", "notify.Service.answer"},
	opDeleteRow:         {step, "settler deletes the row", "run.WaitRow.Done"},
	opReadSettled:       {step, "settler reads META behind it", "lane.Service.settled"},
	opNudgeSettled:      {step, "settler sends a wake-up for what is left", "lane.Service.wakeNext"},
	opRemove:            {step, "settler takes its runs off the unsettled ones", "lane.Service.takeOff"},
	opRemoveRefused:     {step, "settler: something has changed, it reads again", "lane.Service.settled"},
	opDecideFree:        {step, "runner decides again behind runs that others hold", "loop.Runner.Handle"},
	opWaitLooks:         {step, "wait: gateway reads the record", "notify.Service.Wait"},
	opWaitTimer:         {step, "wait: gateway arms the timer", "notify.Service.waitTimer"},
	opWaitRow:           {step, "wait: gateway writes the row", "run.PutWaiter"},
	opWaitLooksAgain:    {step, "wait: gateway reads the record again", "notify.Service.Attach"},
	opWaitTakes:         {step, "wait: gateway takes the row", "notify.Service.attached"},
	opWaitReplies:       {step, "wait: gateway deletes the row and replies", "notify.Service.attached"},
	opDeadline:          {swept, "the timer of the wait comes", "notify.Service.deadline"},
	opNotifierTakes:     {step, "notifier takes the row", "run.WaitRow.Take"},
	opNotifierPosts:     {step, "notifier posts what the row says", "notify.Service.answer"},
	opNotifierDeletes:   {step, "notifier deletes the row", "run.WaitRow.Done"},
	opTimer:             {timed, "a timer brings a wake-up", "lane.Service.Forward"},
	opWakeTime:          {timed, "the time to wake has come", "session.Meta.Asleep"},
	opLeaseOver:         {time, "the lease is over by more than the slack", "session.Meta.Owned"},
	opOriginOver:        {time, "who was telling the end has had its time", "notify.Service.lease"},
	opRowOver:           {time, "the lease of the row is over", "run.WaitRow.Take"},
	opVisible:           {time, "the message of a dead or frozen receiver is visible again", ""},
	opThaw:              {time, "runner thaws", ""},
	opThawLate:          {time, "runner thaws, its last renewal is too old", "claim.Holder.Fresh"},
	opSweep:             {swept, "the watchdog sends a wake-up", "lane.Service.wakeOrphan"},
	opCrash:             {fault, "RUNNER DIES", ""},
	opFreeze:            {fault, "RUNNER FREEZES", ""},
	opGatewayCrash:      {fault, "GATEWAY DIES", ""},
	opNotifierCrash:     {fault, "NOTIFIER DIES, its timer comes again", ""},
	opCommandFreeze:     {fault, "THE COMMAND FREEZES", ""},
	opCommandThaw:       {time, "the command thaws", ""},
	opDuplicate:         {fault, "THE QUEUE DELIVERS A MESSAGE ONCE MORE", ""},
}

// code is something that must not happen.
type code uint8

const (
	sound code = iota
	fenced
	secondEnd
	order
	otherLane
	begunAgain
	stopped
	wrongStop
	twice
	unknown
	invalid
	doubled
	unheard
	unindexed
	untold
	toldTwice
	otherAnswer
	answeredTwice
	lostAccept
	lapsed
	resetUnder
	lostHold
	endless
	stall
	stuck
	storm
)

// Check is one thing that is checked: at every transition, or over the whole graph.
type Check string

var checks = [...]Check{
	sound:         "",
	fenced:        "a superseded holder writes",
	secondEnd:     "a run ends twice",
	order:         "accept order is broken",
	otherLane:     "a run begins in another lane",
	begunAgain:    "a run that has ended or begun begins",
	stopped:       "a stopped run begins, or ends ok",
	wrongStop:     "a run that nobody stopped is aborted",
	twice:         "a side effect happens twice",
	unknown:       "a call is unknown without any fault",
	invalid:       "the transcript is not valid",
	doubled:       "a message is in the transcript twice",
	unheard:       "a subscriber misses the end",
	unindexed:     "work is left outside the active index",
	untold:        "a run is settled and its caller was not told",
	toldTwice:     "a caller is told twice without any fault",
	otherAnswer:   "a waiter gets two different answers",
	answeredTwice: "a waiter is answered twice without any fault",
	lostAccept:    "an accepted message is lost",
	lapsed:        "a holder that is not fresh starts a tool",
	resetUnder:    "a reset under a run that has begun",
	lostHold:      "a holder that lives loses its claim",
	endless:       "a run is begun again and again",
	stall:         "stall without any fault: only the watchdog goes on",
	stuck:         "stuck: nothing leads to a settled state",
	storm:         "storm: wake-ups send wake-ups for ever",
}

// invariants are what holds in every state.
func (m *machine) invariants(s *State) {
	if s.busy == 0 && (s.active != 0 || s.pend|s.mail|s.uns != 0) {
		s.breaks(unindexed)
	}
}
