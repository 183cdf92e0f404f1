package sqs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"laneway/shared/clock"
	"laneway/shared/id"
	"laneway/shared/queue"
)

// lookVisibility is how long a dead letter is out of others' sight while it is
// looked at or moved.
const lookVisibility = 30 * time.Second

// DeadAPI is what DeadLetters needs of *sqs.Client.
type DeadAPI interface {
	SendAPI
	ReceiveAPI
}

// DeadLetters implements queue.DeadLetterStore over dead-letter queues. SQS has no
// way to look at a queue but to receive from it, so one operator at a time sees
// all; what was seen is put back.
type DeadLetters struct {
	api   DeadAPI
	send  *Sender
	queue map[queue.Lane]string
}

var _ queue.DeadLetterStore = (*DeadLetters)(nil)

// NewDeadLetters makes the store of queues as CreateQueues makes them.
func NewDeadLetters(api DeadAPI, q Queues) (*DeadLetters, error) {
	if api == nil || len(q.Dead) == 0 {
		return nil, errors.New("queue/sqs: no client, or no dead-letter queues")
	}
	s, err := New(api, q.Config)
	if err != nil {
		return nil, err
	}
	return &DeadLetters{api: api, send: s, queue: maps.Clone(q.Dead)}, nil
}

// DeadLetters implements queue.DeadLetterStore.
func (d *DeadLetters) DeadLetters(ctx context.Context, lane queue.Lane, limit int) ([]queue.DeadLetter, error) {
	var out []queue.DeadLetter
	var seen []types.Message
	err := d.each(ctx, lane, limit, func(m types.Message) error {
		out = append(out, letterOf(lane, m))
		seen = append(seen, m)
		return nil
	})
	// Put back even when ctx ended, and the last first, as a group's order wants.
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	url := d.queue[lane]
	for _, m := range slices.Backward(seen) {
		_, verr := d.api.ChangeMessageVisibility(back, &sqs.ChangeMessageVisibilityInput{
			QueueUrl: &url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 0,
		})
		if err == nil && verr != nil {
			err = classify("put back", verr)
		}
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Redrive implements queue.DeadLetterStore: each letter is sent and then deleted,
// so an error in between leaves it in both places, and its next Redrive within
// the deduplication window sends nothing.
func (d *DeadLetters) Redrive(ctx context.Context, lane queue.Lane) (int, error) {
	n := 0
	err := d.each(ctx, lane, 0, func(m types.Message) error {
		body := []byte(aws.ToString(m.Body))
		var err error
		if lane == "" {
			err = d.send.After(ctx, 0, body)
		} else {
			err = d.send.Send(ctx, lane, groupOf(m), id.Hash("redrive", aws.ToString(m.MessageId)), body)
		}
		if err != nil {
			return err
		}
		n++
		return d.delete(ctx, lane, m)
	})
	return n, err
}

// Purge implements queue.DeadLetterStore.
func (d *DeadLetters) Purge(ctx context.Context, lane queue.Lane) (int, error) {
	n := 0
	err := d.each(ctx, lane, 0, func(m types.Message) error {
		n++
		return d.delete(ctx, lane, m)
	})
	return n, err
}

// each receives up to limit letters (0: all) and gives them to f.
func (d *DeadLetters) each(ctx context.Context, lane queue.Lane, limit int, f func(types.Message) error) error {
	url := d.queue[lane]
	if url == "" {
		return fmt.Errorf("%w: no dead-letter queue for lane %q", queue.ErrInvalid, lane)
	}
	for n := 0; limit == 0 || n < limit; {
		most := maxReceive
		if limit > 0 {
			most = min(most, limit-n)
		}
		out, err := d.api.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: int32(most), VisibilityTimeout: seconds(lookVisibility),
			WaitTimeSeconds: 1, // asks all of the queue's servers, which a short poll does not
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{
				types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameMessageGroupId,
				types.MessageSystemAttributeNameApproximateFirstReceiveTimestamp,
			},
		})
		if err != nil {
			return classify("receive", err)
		}
		if len(out.Messages) == 0 {
			return nil
		}
		for _, m := range out.Messages {
			if err := f(m); err != nil {
				return err
			}
			n++
		}
	}
	return nil
}

func (d *DeadLetters) delete(ctx context.Context, lane queue.Lane, m types.Message) error {
	url := d.queue[lane]
	_, err := d.api.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle})
	return classify("delete", err)
}

// letterOf is a letter as SQS knows it: At is the last time it was first seen,
// Receives counts looks at the dead-letter queue too.
func letterOf(lane queue.Lane, m types.Message) queue.DeadLetter {
	ms, err := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameApproximateFirstReceiveTimestamp)], 10, 64)
	if err != nil {
		ms = 0
	}
	return queue.DeadLetter{
		ID: aws.ToString(m.MessageId), Lane: lane, Group: groupOf(m),
		Body: []byte(aws.ToString(m.Body)), Receives: receivesOf(m), At: clock.FromMillis(ms),
	}
}
