package sqs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"laneway/shared/queue"
)

// retention is how long a dead letter is kept: the longest that SQS allows.
const retention = 14 * 24 * time.Hour

// CreateAPI is what CreateQueues needs of *sqs.Client.
type CreateAPI interface {
	CreateQueue(ctx context.Context, in *sqs.CreateQueueInput, opts ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error)
	GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, opts ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// Settings of CreateQueues.
type Settings struct {
	Lanes            []queue.Def   // zero: queue.Definitions()
	Visibility       time.Duration // zero: DefaultVisibility
	TimerMaxReceives int           // zero: queue.TimerMaxReceives
}

// Queues is what CreateQueues made. Dead names the dead-letter queues by lane;
// that of the timers has the empty one.
type Queues struct {
	Config
	Dead map[queue.Lane]string
}

// CreateQueues makes the queues that the stack of the deployed edition has, for
// tests, emulators and the edition without functions: for each lane
// <prefix>-<lane>.fifo with its dead-letter queue <prefix>-<lane>-dead.fifo, in
// high-throughput mode, and <prefix>-timers with <prefix>-timers-dead. Queues that
// are there with the same attributes are left as they are.
func CreateQueues(ctx context.Context, api CreateAPI, prefix string, s Settings) (Queues, error) {
	if len(s.Lanes) == 0 {
		s.Lanes = queue.Definitions()
	}
	visibility := seconds(cmp.Or(s.Visibility, DefaultVisibility))
	out := Queues{Config: Config{QueueURLs: make(map[queue.Lane]string)}, Dead: make(map[queue.Lane]string)}
	for _, d := range s.Lanes {
		live, dead, err := createPair(ctx, api, prefix+"-"+string(d.Lane), ".fifo", d.MaxReceives, visibility)
		if err != nil {
			return Queues{}, err
		}
		out.QueueURLs[d.Lane], out.Dead[d.Lane] = live, dead
	}
	var err error
	out.TimerURL, out.Dead[""], err = createPair(ctx, api, prefix+"-timers", "", cmp.Or(s.TimerMaxReceives, queue.TimerMaxReceives), visibility)
	return out, err
}

func createPair(ctx context.Context, api CreateAPI, name, suffix string, receives int, visibility int32) (live, dead string, err error) {
	attributes := func(more map[types.QueueAttributeName]string) map[string]string {
		out := make(map[string]string)
		if suffix != "" {
			more[types.QueueAttributeNameFifoQueue] = "true"
			more[types.QueueAttributeNameDeduplicationScope] = string(dedupByGroup)
			more[types.QueueAttributeNameFifoThroughputLimit] = string(throughputByGroup)
		}
		for k, v := range more {
			out[string(k)] = v
		}
		return out
	}
	dead, err = create(ctx, api, name+"-dead"+suffix, attributes(map[types.QueueAttributeName]string{
		types.QueueAttributeNameMessageRetentionPeriod: strconv.Itoa(int(retention / time.Second)),
	}))
	if err != nil {
		return "", "", err
	}
	got, err := api.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &dead, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		return "", "", classify("queue attributes", err)
	}
	redrive, err := json.Marshal(map[string]any{
		"deadLetterTargetArn": got.Attributes[string(types.QueueAttributeNameQueueArn)], "maxReceiveCount": receives,
	})
	if err != nil {
		return "", "", fmt.Errorf("queue/sqs: redrive policy: %w", err)
	}
	live, err = create(ctx, api, name+suffix, attributes(map[types.QueueAttributeName]string{
		types.QueueAttributeNameVisibilityTimeout: strconv.Itoa(int(visibility)),
		types.QueueAttributeNameRedrivePolicy:     string(redrive),
	}))
	return live, dead, err
}

// The values of the high-throughput mode.
const (
	dedupByGroup      = "messageGroup"
	throughputByGroup = "perMessageGroupId"
)

func create(ctx context.Context, api CreateAPI, name string, attributes map[string]string) (string, error) {
	out, err := api.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		return "", classify("create queue", err)
	}
	return *out.QueueUrl, nil
}
