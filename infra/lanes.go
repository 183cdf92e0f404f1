package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"laneway/shared/queue"
)

// Lanes are the FIFO queues of wake-ups, built from the definitions beside the
// port, and the one queue where wake-ups end that fail again and again. They share
// it: a dead wake-up says its lane, goes back to it on a redrive, and is looked at
// by a person or not at all, since the watchdog finds its session by itself.
type Lanes struct {
	scope  constructs.Construct
	Queues map[queue.Lane]awssqs.Queue
	Dead   awssqs.Queue
}

// deadLetterDays is as long as SQS keeps a message: time for somebody to look.
const deadLetterDays = 14

// laneMargin is added to the runner's time limit for the visibility timeout of a
// lane. AWS advises six times the limit, so that throttled invocations can be
// tried again before the message is seen twice. Here a message that is seen twice
// is harmless (the second receiver finds the claim of the first and acknowledges),
// while one that a dead runner holds keeps every later wake-up of its session back,
// which then has to wait for the watchdog's minute. So the shortest time is best
// that is surely longer than an invocation; the mapping's concurrency keeps pollers
// from taking more than can run.
const laneMargin = 60

// NewLanes builds the queues.
func NewLanes(scope constructs.Construct, c Config) Lanes {
	l := Lanes{
		scope:  constructs.NewConstruct(scope, jsii.String("Lanes")),
		Queues: map[queue.Lane]awssqs.Queue{},
	}
	l.Dead = awssqs.NewQueue(l.scope, jsii.String("dead"), &awssqs.QueueProps{
		QueueName:       jsii.String(c.Name + "-dead.fifo"),
		Fifo:            jsii.Bool(true),
		RetentionPeriod: awscdk.Duration_Days(jsii.Number(deadLetterDays)),
		Encryption:      awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL:      jsii.Bool(!c.Emulator),
		RemovalPolicy:   awscdk.RemovalPolicy_DESTROY,
	})
	suppress(l.Dead, "AwsSolutions-SQS3", "This is the dead-letter queue.")
	for _, d := range queue.Definitions() {
		l.Queues[d.Lane] = awssqs.NewQueue(l.scope, jsii.String(string(d.Lane)), &awssqs.QueueProps{
			QueueName: jsii.String(c.Name + "-" + string(d.Lane) + ".fifo"),
			Fifo:      jsii.Bool(true),
			// High throughput: limits and deduplication count per group, so one
			// busy session takes nothing from the others.
			DeduplicationScope:  awssqs.DeduplicationScope_MESSAGE_GROUP,
			FifoThroughputLimit: awssqs.FifoThroughputLimit_PER_MESSAGE_GROUP_ID,
			VisibilityTimeout:   awscdk.Duration_Seconds(jsii.Number(c.Sizes[Runner].TimeoutSeconds + laneMargin)),
			RetentionPeriod:     awscdk.Duration_Days(jsii.Number(deadLetterDays)),
			DeadLetterQueue:     &awssqs.DeadLetterQueue{Queue: l.Dead, MaxReceiveCount: jsii.Number(d.MaxReceives)},
			Encryption:          awssqs.QueueEncryption_SQS_MANAGED,
			EnforceSSL:          jsii.Bool(!c.Emulator),
			RemovalPolicy:       awscdk.RemovalPolicy_DESTROY,
		})
	}
	return l
}

// Feed makes the function the receiver of every lane. One message an invocation:
// two in one batch would wait for each other. The cap of the mapping is the cap of
// the lane. Rights to poll are the function's grant, not made here.
func (l Lanes) Feed(f Function, c Config) {
	for _, d := range queue.Definitions() {
		awslambda.NewEventSourceMapping(l.scope, jsii.String(string(d.Lane)+"-mapping"), &awslambda.EventSourceMappingProps{
			Target:                  f.Function,
			EventSourceArn:          l.Queues[d.Lane].QueueArn(),
			BatchSize:               jsii.Number(1),
			MaxConcurrency:          jsii.Number(c.Lanes[d.Lane]),
			ReportBatchItemFailures: jsii.Bool(true),
		}).Node().AddDependency(f.Role)
	}
}
