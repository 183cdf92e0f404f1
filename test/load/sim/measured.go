package main

// What the simulation takes for given. Each constant says where it is from: "measured"
// is the table of make bench-cloud in docs/performance.md, "default" is cdk.json,
// "assumed" is a guess that is written down in docs/scale.md.
const (
	// People. Assumed: somebody who uses an assistant at work.
	messagesADay   = 10.0
	messagesAVisit = 5.0
	thinkSeconds   = 60.0
	daysAMonth     = 30

	// Turns. Assumed: one in five needs tools; a model call takes two seconds, as in the
	// budgets of the design (section 7a).
	toolShare    = 0.2
	toolRounds   = 5
	modelSeconds = 2.0

	// Time of functions beside the model's. Assumed: a request to DynamoDB or SQS takes
	// 6 ms on AWS, which can't be measured here; how many there are in a row is measured.
	requestSeconds = 0.006
	acceptSeconds  = 2*requestSeconds + 0.003
	runnerOverhead = 7 * requestSeconds
	roundOverhead  = 3 * requestSeconds

	// Requests of API Gateway. Measured: $connect and connect in, the challenge out.
	handshake  = 3
	postsPlain = 15.0
	postsTools = 70.0

	// Units of DynamoDB of a turn, by table. Measured. Of those of sessions, an
	// index takes what the transitions of a session say: into "active" and out of it, and
	// from one place in "recent" to the next.
	sessionsWrites = (1-toolShare)*14.0 + toolShare*54.0
	runsWrites     = (1-toolShare)*8.0 + toolShare*84.0
	sessionsReads  = (1-toolShare)*5.0 + toolShare*31.0
	sessionWrites  = 54.0 / (toolRounds + 1) / modelSeconds // a second of the busiest session
	activeWrites   = 2.0
	recentWrites   = 2.0
	activeKeys     = 16.0 // of the index, shared/session

	// Jobs. Assumed: one in twenty has one, two in a hundred have it at nine sharp.
	jobsOfUsers   = 0.05
	jobsAtOnce    = 0.02
	secondsAtOnce = 60.0 // EventBridge Scheduler fires within the minute

	// Money. Measured: USD of 1,000 turns, without tokens (docs/cost.md).
	costPlain, costTools = 0.0477, 0.252
	// From the price list: USD of the connection of a user for a month, twenty minutes
	// for each visit.
	minutesAVisit = 20.0
	minutePrice   = 0.25e-6
	// Measured: USD of a stack that does nothing, a month.
	costIdle = 3.26
)

// burstShare is how many of all users come at once in a burst. Assumed.
const burstShare = 0.05

// scalingWindow is the time over which Lambda counts new environments.
const scalingWindow = 10.0

// posts is the mean of a turn.
const posts = (1-toolShare)*postsPlain + toolShare*postsTools
