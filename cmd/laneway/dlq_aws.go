package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"laneway/shared/queue"
	"laneway/shared/queue/sqs"
)

// openDead finds the dead-letter queues of a stack: one of each lane where serve made
// them, one of all lanes where the stack was deployed. The gateway's function has no
// right to read them, so that what faces the internet cannot: an operator's own
// credentials can.
func openDead(ctx context.Context, stack string) (deadLetters, error) {
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return deadLetters{}, fmt.Errorf("AWS configuration: %w", err)
	}
	if c.Region == "" {
		return deadLetters{}, errors.New("--backend aws needs AWS_REGION, or a region in the profile")
	}
	client := awssqs.NewFromConfig(c)
	q, err := awsBackend{Name: stack}.queues(ctx, client)
	if err != nil {
		return deadLetters{}, err
	}
	q.Dead = map[queue.Lane]string{}
	var d deadLetters
	find := func(l queue.Lane, name string) error {
		out, err := client.GetQueueUrl(ctx, &awssqs.GetQueueUrlInput{QueueName: &name})
		if _, none := errors.AsType[*sqstypes.QueueDoesNotExist](err); none {
			return nil
		}
		if err != nil {
			return fmt.Errorf("queue %s: %w", name, err)
		}
		q.Dead[l], d.lanes = aws.ToString(out.QueueUrl), append(d.lanes, l)
		return nil
	}
	for _, def := range queue.Definitions() {
		if err := find(def.Lane, stack+"-"+string(def.Lane)+"-dead.fifo"); err != nil {
			return d, err
		}
	}
	if len(d.lanes) == 0 {
		// What is sent again goes to the main lane: a wake-up that comes to the wrong one
		// is sent on from there.
		if err := find(queue.Main, stack+"-dead.fifo"); err != nil {
			return d, err
		}
	}
	if err := find("", stack+"-timers-dead"); err != nil {
		return d, err
	}
	if len(d.lanes) == 0 {
		return d, fmt.Errorf("stack %s has no dead-letter queues", stack)
	}
	d.store, err = sqs.NewDeadLetters(client, q)
	return d, err
}
