// Package sqs is the queue port over SQS: FIFO queues for the lanes and a
// standard queue for timers.
//
// Guarantees are those of the port, with the grain of SQS: a timer's delay is
// rounded up to a second; deduplication ids are remembered by group, as the
// high-throughput mode has it. Sender is what functions use, where the event
// source mapping receives; Poller receives for an edition without functions,
// and leaves no goroutine behind.
package sqs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"laneway/shared/meter"
	"laneway/shared/queue"
)

// SendAPI is what a Sender needs of *sqs.Client.
type SendAPI interface {
	SendMessage(ctx context.Context, in *sqs.SendMessageInput, opts ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Config names the queues.
type Config struct {
	QueueURLs map[queue.Lane]string
	TimerURL  string
}

func (c Config) clone() (Config, error) {
	for lane, url := range c.QueueURLs {
		if lane == "" || url == "" {
			return c, errors.New("queue/sqs: a lane has no name or no queue")
		}
	}
	if len(c.QueueURLs) == 0 && c.TimerURL == "" {
		return c, errors.New("queue/sqs: no queues")
	}
	c.QueueURLs = maps.Clone(c.QueueURLs)
	return c, nil
}

// Sender implements queue.Sender and queue.Timers. Each call is one request,
// which the SDK's client repeats as it is configured; deduplication makes that
// harmless for lanes, and a timer may fire more than once.
type Sender struct {
	api SendAPI
	cfg Config
}

var (
	_ queue.Sender = (*Sender)(nil)
	_ queue.Timers = (*Sender)(nil)
)

// New makes a sender. A lane without a queue is refused when it is sent to: a
// function knows only the queues that it was granted.
func New(api SendAPI, c Config) (*Sender, error) {
	cfg, err := c.clone()
	if err != nil {
		return nil, err
	}
	if api == nil {
		return nil, errors.New("queue/sqs: no client")
	}
	return &Sender{api: api, cfg: cfg}, nil
}

// Send implements queue.Sender.
func (s *Sender) Send(ctx context.Context, lane queue.Lane, group, dedup string, body []byte) error {
	url := s.cfg.QueueURLs[lane]
	if url == "" {
		return fmt.Errorf("%w: no queue for lane %q", queue.ErrInvalid, lane)
	}
	if err := queue.Check(group, dedup, body); err != nil {
		return err
	}
	return s.send(ctx, "send", &sqs.SendMessageInput{
		QueueUrl: &url, MessageBody: aws.String(string(body)),
		MessageGroupId: &group, MessageDeduplicationId: &dedup,
	})
}

// After implements queue.Timers.
func (s *Sender) After(ctx context.Context, delay time.Duration, body []byte) error {
	if s.cfg.TimerURL == "" {
		return fmt.Errorf("%w: no queue for timers", queue.ErrInvalid)
	}
	if err := queue.CheckDelay(delay); err != nil {
		return err
	}
	if err := queue.CheckBody(body); err != nil {
		return err
	}
	return s.send(ctx, "timer", &sqs.SendMessageInput{
		QueueUrl: &s.cfg.TimerURL, MessageBody: aws.String(string(body)), DelaySeconds: seconds(delay),
	})
}

func (s *Sender) send(ctx context.Context, what string, in *sqs.SendMessageInput) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	meter.From(ctx).Add(meter.QueueCalls, queue.Requests(len(*in.MessageBody)))
	_, err := s.api.SendMessage(ctx, in)
	return classify(what, err)
}

// seconds rounds up: a timer is never early.
func seconds(d time.Duration) int32 { return int32((d + time.Second - 1) / time.Second) }
