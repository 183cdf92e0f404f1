package main

import (
	"cmp"
	"slices"
)

// quota is a limit on the way of a message, and how much of it a population asks for.
type quota struct {
	name  string
	limit float64
	want  float64
}

func (q quota) share() float64 { return q.want / q.limit }

// Quotas of AWS: defaults of an account in us-east-1. docs/scale.md names the page of
// each.
const (
	quotaConcurrency = 1000  // Lambda, concurrent executions
	quotaScaling     = 1000  // Lambda, new environments of a function in 10 s
	quotaMapping     = 1000  // Lambda, most that MaximumConcurrency can be
	quotaConnects    = 500   // API Gateway, new connections a second
	quotaRequests    = 10000 // API Gateway, requests and posts a second
	quotaBurst       = 5000  // and its bucket
	quotaSends       = 70000 // SQS, sends a second to a FIFO queue of high throughput
	quotaTable       = 40000 // DynamoDB, write units a second of a table
	quotaNewTable    = 4000  // of a table that has never had more
	quotaPartition   = 1000  // of a partition, so of one key
	quotaSchedules   = 10_000_000
	quotaFirings     = 1000 // EventBridge Scheduler, invocations a second
	pollersAtFirst   = 5    // Lambda, batches at once of a mapping that begins
	pollersGrowth    = 5    // more of them a second
)

// deployed are the limits of a stack that nobody has changed, in an account of which
// nobody has asked anything.
func deployed() Limits {
	return Limits{
		Lane: 16, Account: quotaConcurrency, Scaling: quotaScaling / scalingWindow, Pollers: pollersAtFirst, Growth: pollersGrowth,
		Connects: 50, Requests: quotaRequests, Burst: quotaBurst,
	}
}

// wanted lists what a population asks for: what it would use if nothing held it back.
// free is a simulation without limits. What breaks first stands first.
func wanted(users int, free Result, l Limits) []quota {
	perSecond := free.Sends.peak
	all := []quota{
		{"lane cap (`laneway.lane.main`)", float64(l.Lane), float64(free.Runner)},
		{"most of a mapping", quotaMapping, float64(free.Runner)},
		{"Lambda concurrency of the account", quotaConcurrency, float64(free.Runner + free.Gateway)},
		{"Lambda scaling of the runner, 10 s", quotaScaling, free.Scaled.peak},
		{"`$connect` throttle (`laneway.connect.rate`)", l.Connects, free.Connects.peak},
		{"new connections of the account", quotaConnects, free.Connects.peak},
		{"API Gateway requests and posts", quotaRequests, free.Requests.peak},
		{"SQS sends to a lane", quotaSends, perSecond},
		{"table `sessions`, new", quotaNewTable, perSecond * sessionsWrites},
		{"table `sessions`", quotaTable, perSecond * sessionsWrites},
		{"table `sessions`, reads", quotaTable, perSecond * sessionsReads},
		{"table `runs`", quotaTable, perSecond * runsWrites},
		{"index `active`, one of 16 keys", quotaPartition, perSecond * activeWrites / activeKeys},
		{"index `recent`, all users in one tenant", quotaPartition, perSecond * recentWrites},
		{"one session's key in `sessions`", quotaPartition, sessionWrites},
		{"schedules", quotaSchedules, float64(users) * jobsOfUsers},
		{"firings of schedules at nine", quotaFirings, float64(users) * jobsAtOnce / secondsAtOnce},
	}
	slices.SortStableFunc(all, func(a, b quota) int { return cmp.Compare(b.share(), a.share()) })
	return all
}
