package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Timers are a standard queue whose messages carry their own delay, and the
// notifier behind it. FIFO queues know no delay of a message.
type Timers struct {
	scope    constructs.Construct
	Queue    awssqs.Queue
	Dead     awssqs.Queue
	Notifier Function
}

// timerVisibility is the factor between the notifier's time limit and the
// visibility timeout, as AWS advises: on a standard queue a held message keeps
// nobody else back, and a timer that fires twice costs a post.
const timerVisibility = 6

// timerReceives is how often a timer is tried. Its deadline has passed by then,
// and what it would have said is in the tables.
const timerReceives = 5

// timerBatch is how many timers one invocation takes. They are handled side by
// side; the mapping waits for no batch to fill, so a challenge is not held up.
const timerBatch = 10

// NewTimers builds the queue; Fire builds what listens to it.
func NewTimers(scope constructs.Construct, c Config) Timers {
	t := Timers{scope: constructs.NewConstruct(scope, jsii.String("Timers"))}
	t.Dead = awssqs.NewQueue(t.scope, jsii.String("dead"), &awssqs.QueueProps{
		QueueName:       jsii.String(c.Name + "-timers-dead"),
		RetentionPeriod: awscdk.Duration_Days(jsii.Number(deadLetterDays)),
		Encryption:      awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL:      jsii.Bool(!c.Emulator),
		RemovalPolicy:   awscdk.RemovalPolicy_DESTROY,
	})
	suppress(t.Dead, "AwsSolutions-SQS3", "This is the dead-letter queue.")
	t.Queue = awssqs.NewQueue(t.scope, jsii.String("queue"), &awssqs.QueueProps{
		QueueName:         jsii.String(c.Name + "-timers"),
		VisibilityTimeout: awscdk.Duration_Seconds(jsii.Number(timerVisibility * c.Sizes[Notifier].TimeoutSeconds)),
		RetentionPeriod:   awscdk.Duration_Days(jsii.Number(1)),
		DeadLetterQueue:   &awssqs.DeadLetterQueue{Queue: t.Dead, MaxReceiveCount: jsii.Number(timerReceives)},
		Encryption:        awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL:        jsii.Bool(!c.Emulator),
		RemovalPolicy:     awscdk.RemovalPolicy_DESTROY,
	})
	return t
}

// Fire adds the notifier. It sends to the lanes and to its own queue, which the
// default of recursion detection would stop after 16 rounds.
func (t *Timers) Fire(parts *Parts) {
	t.Notifier = parts.NewFunction(t.scope, Notifier, FunctionProps{Recursive: true})
	awslambda.NewEventSourceMapping(t.scope, jsii.String("mapping"), &awslambda.EventSourceMappingProps{
		Target:                  t.Notifier.Function,
		EventSourceArn:          t.Queue.QueueArn(),
		BatchSize:               jsii.Number(timerBatch),
		MaxConcurrency:          jsii.Number(parts.Config.Timers),
		ReportBatchItemFailures: jsii.Bool(true),
	}).Node().AddDependency(t.Notifier.Role)
}
