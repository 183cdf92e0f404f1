package sqs

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"laneway/shared/clock"
	"laneway/shared/queue"
)

const (
	// DefaultVisibility is how long a message stays ours without a sign of life,
	// and how long a failed one waits. A handler may run for longer.
	DefaultVisibility = 30 * time.Second
	// DefaultTimerConcurrency is the most timer handlers at once.
	DefaultTimerConcurrency = 16
	// maxReceive is the most messages that SQS gives at once.
	maxReceive = 10
	// poll is the longest that SQS waits for a message.
	poll = 20 * time.Second
	// maxBackoff bounds the pause after failed receives.
	maxBackoff = 5 * time.Second
)

// ReceiveAPI is what a Poller needs of *sqs.Client.
type ReceiveAPI interface {
	ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, opts ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessage(ctx context.Context, in *sqs.DeleteMessageInput, opts ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
	ChangeMessageVisibility(ctx context.Context, in *sqs.ChangeMessageVisibilityInput, opts ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
}

// PollerConfig is what NewPoller takes.
type PollerConfig struct {
	Config
	Lanes            []queue.Def   // caps; zero: queue.Definitions(). Each needs a queue
	TimerConcurrency int           // zero: DefaultTimerConcurrency
	Visibility       time.Duration // at least 1 s; zero: DefaultVisibility
	// Batch is the most messages of a lane that are received at once, up to 10;
	// zero: 1, like the mapping of the deployed stack. With more, those that lie
	// behind a failing one are received with it and counted for it, so that they
	// may become dead letters without ever having been handled.
	Batch int
	Clock clock.Clock  // zero: clock.System
	Log   *slog.Logger // of failures; zero: none is written
}

func (c PollerConfig) withDefaults() (PollerConfig, error) {
	var err error
	if c.Config, err = c.clone(); err != nil {
		return c, err
	}
	if len(c.Lanes) == 0 {
		c.Lanes = queue.Definitions()
	}
	for _, d := range c.Lanes {
		if c.QueueURLs[d.Lane] == "" || d.Concurrency < 1 {
			return c, errors.New("queue/sqs: a lane has no queue or no concurrency")
		}
	}
	c.TimerConcurrency = cmp.Or(c.TimerConcurrency, DefaultTimerConcurrency)
	c.Visibility = cmp.Or(c.Visibility, DefaultVisibility)
	c.Batch = cmp.Or(c.Batch, 1)
	if c.TimerConcurrency < 0 || c.Visibility < time.Second || c.Batch < 0 || c.Batch > maxReceive {
		return c, errors.New("queue/sqs: a poller's setting is out of its range")
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Poller is the receiving side where no event source mapping does it.
type Poller struct {
	api ReceiveAPI
	cfg PollerConfig
}

// NewPoller makes a poller; nothing is received before Run.
func NewPoller(api ReceiveAPI, c PollerConfig) (*Poller, error) {
	cfg, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if api == nil {
		return nil, errors.New("queue/sqs: no client")
	}
	return &Poller{api: api, cfg: cfg}, nil
}

// Run hands messages to laneHandler and timers to timerHandler until ctx ends and
// every handler has returned; a nil handler leaves its side waiting. Handlers get
// ctx itself. What fails because of the end is made visible at once for the next
// receiver; a message that SQS was giving out at that very moment comes after the
// visibility timeout.
func (p *Poller) Run(ctx context.Context, laneHandler, timerHandler queue.Handler) error {
	var wg sync.WaitGroup
	if laneHandler != nil {
		for _, d := range p.cfg.Lanes {
			f := p.feed(p.cfg.QueueURLs[d.Lane], d.Lane, laneHandler)
			wg.Go(func() { f.run(ctx, d.Concurrency, p.cfg.Batch) })
		}
	}
	if timerHandler != nil && p.cfg.TimerURL != "" {
		f := p.feed(p.cfg.TimerURL, "", timerHandler)
		wg.Go(func() { f.run(ctx, p.cfg.TimerConcurrency, maxReceive) })
	}
	<-ctx.Done()
	wg.Wait()
	return nil
}

// feed is one queue and the handlers of its messages.
type feed struct {
	*Poller
	url    string
	lane   queue.Lane
	handle queue.Handler
	log    *slog.Logger
}

func (p *Poller) feed(url string, lane queue.Lane, h queue.Handler) *feed {
	return &feed{Poller: p, url: url, lane: lane, handle: h, log: p.cfg.Log.With("lane", string(lane))}
}

// run receives as many messages as there are free handlers, and ends when ctx has
// and its handlers have returned. A group is in the hands of one handler at most:
// SQS gives nothing of a group while something of it is out.
func (f *feed) run(ctx context.Context, handlers, batch int) {
	free := make(chan struct{}, handlers)
	for range handlers {
		free <- struct{}{}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	fails := 0
	for ctx.Err() == nil {
		n := take(ctx, free, batch)
		if n == 0 {
			return
		}
		groups, err := f.receive(ctx, n)
		for ; n > len(groups); n-- {
			free <- struct{}{}
		}
		for _, g := range groups {
			wg.Go(func() {
				defer func() { free <- struct{}{} }()
				f.work(ctx, g)
			})
		}
		if err == nil {
			fails = 0
			continue
		}
		if ctx.Err() != nil {
			return
		}
		f.log.Warn("queue could not be read", "error", classify("receive", err))
		fails++
		pause := min(100*time.Millisecond<<min(fails, 10), maxBackoff)
		if clock.Sleep(ctx, f.cfg.Clock, rand.N(pause)) != nil { //nolint:gosec // spreads load, guards nothing
			return
		}
	}
}

// take waits for a free handler and takes up to n of them; 0 when ctx ended.
func take(ctx context.Context, free <-chan struct{}, n int) int {
	select {
	case <-free:
	case <-ctx.Done():
		return 0
	}
	for taken := 1; taken < n; taken++ {
		select {
		case <-free:
		default:
			return taken
		}
	}
	return n
}

// receive gives what came, by group, each in its order. A timer is a group alone.
func (f *feed) receive(ctx context.Context, n int) ([][]types.Message, error) {
	out, err := f.api.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &f.url, MaxNumberOfMessages: int32(n),
		WaitTimeSeconds: seconds(poll), VisibilityTimeout: seconds(f.cfg.Visibility),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameMessageGroupId,
		},
	})
	if err != nil {
		return nil, err
	}
	var groups [][]types.Message
	at := make(map[string]int)
	for _, m := range out.Messages {
		group := groupOf(m)
		i, ok := at[group]
		if !ok || f.lane == "" {
			i = len(groups)
			at[group] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], m)
	}
	return groups, nil
}
