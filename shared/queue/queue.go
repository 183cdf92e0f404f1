// Package queue is the wake-up port of Laneway: FIFO lanes and timers.
//
// A message is only a wake-up: what happened is in the tables. So losing one,
// getting it twice, late or out of order costs time, never work. Guarantees of a
// lane: messages of one group are handled one at a time and in the order sent;
// a message whose handler fails comes again after the visibility timeout and
// holds back its group until then; after MaxReceives failures it goes to the
// dead-letter queue; a deduplication id sent again within 5 minutes is dropped.
// Groups do not hold each other up while handlers are free. A timer fires once
// or more, never early.
//
// The adapters are sqs (AWS) and bolt (one machine); queuetest is the judge.
package queue

import (
	"context"
	"errors"
	"time"
)

// Lane names a FIFO queue with a parallelism of its own.
type Lane string

// The global lanes.
const (
	Main     Lane = "main"
	Cron     Lane = "cron"
	Subagent Lane = "subagent"
)

// Def is a lane as data, for CDK and the local edition.
type Def struct {
	Lane        Lane
	Concurrency int // most handlers at once: the global cap
	MaxReceives int // then the dead-letter queue
}

// Definitions lists the lanes with their default caps.
func Definitions() []Def {
	return []Def{{Main, 16, 5}, {Cron, 8, 5}, {Subagent, 8, 5}}
}

const (
	// DedupWindow is how long a deduplication id is remembered.
	DedupWindow = 5 * time.Minute
	// MaxDelay is the longest delay of a timer; a longer wait re-arms itself.
	MaxDelay = 15 * time.Minute
	// MaxBody is the largest body, in bytes.
	MaxBody = 256 << 10
)

// Errors that callers branch on.
var (
	ErrInvalid   = errors.New("queue: invalid message")
	ErrThrottled = errors.New("queue: throttled")
	ErrClosed    = errors.New("queue: closed")
)

// Sender puts messages into lanes. Group and dedup are 1 to 128 characters of
// letters, digits and punctuation.
type Sender interface {
	Send(ctx context.Context, lane Lane, group, dedup string, body []byte) error
}

// Timers deliver a body after a delay of 0 to MaxDelay, with a grain of a second
// on AWS.
type Timers interface {
	After(ctx context.Context, delay time.Duration, body []byte) error
}

// Message is a delivery.
type Message struct {
	ID       string
	Lane     Lane // empty for a timer
	Group    string
	Body     []byte
	Receives int // 1 on the first delivery
}

// Handler handles one message. An error means: deliver it again later.
type Handler func(ctx context.Context, m Message) error
