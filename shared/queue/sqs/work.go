package sqs

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"laneway/shared/clock"
	"laneway/shared/queue"
)

const (
	// lastWrite bounds a delete or release. It has a context of its own: Run's
	// may be over when a handler returns.
	lastWrite = 5 * time.Second
	// beats is how many signs of life fit into the visibility timeout, so that a
	// lost one does no harm.
	beats = 3
)

// work handles the messages of one group one after another. A failed one waits
// for the visibility timeout; those behind it are put back unhandled, and stay
// behind it because SQS holds their group until then.
func (f *feed) work(ctx context.Context, messages []types.Message) {
	ours := &holding{messages: messages}
	stop := f.keep(ctx, ours)
	defer stop()
	for i, m := range messages {
		err := ctx.Err()
		if err == nil {
			err = queue.Call(ctx, f.handle, messageOf(f.lane, m))
		}
		if err == nil {
			ours.drop()
			f.delete(ctx, m)
			continue
		}
		stop()
		if ctx.Err() != nil { // the end is not the message's fault
			f.release(ctx, 0, messages[i:])
			return
		}
		f.report(m, err)
		f.release(ctx, f.cfg.Visibility, messages[i:i+1])
		f.release(ctx, 0, messages[i+1:])
		return
	}
}

// holding is the messages of a group that are not settled yet.
type holding struct {
	mu       sync.Mutex
	messages []types.Message
}

func (h *holding) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.messages = h.messages[1:]
}

func (h *holding) left() []types.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.messages
}

// keep keeps messages ours until stop is called, which waits for the end of it.
// It goes on when ctx has ended, since the handler may take a moment to return.
func (f *feed) keep(ctx context.Context, ours *holding) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for clock.Sleep(ctx, f.cfg.Clock, f.cfg.Visibility/beats) == nil {
			for _, m := range ours.left() {
				f.extend(ctx, m)
			}
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-done
	})
}

func (f *feed) extend(ctx context.Context, m types.Message) {
	err := f.visibility(ctx, m, f.cfg.Visibility)
	if err != nil && ctx.Err() == nil && !isLost(err) {
		f.log.Warn("queue message could not be kept", "message", aws.ToString(m.MessageId), "error", err)
	}
}

// release makes messages come again after d, the last first, so that at no time
// a later one of the group is there without the earlier.
func (f *feed) release(ctx context.Context, d time.Duration, messages []types.Message) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	for _, m := range slices.Backward(messages) {
		if err := f.visibility(ctx, m, d); err != nil && !isLost(err) {
			f.log.Warn("queue message could not be released", "message", aws.ToString(m.MessageId), "error", err)
		}
	}
}

func (f *feed) visibility(ctx context.Context, m types.Message, d time.Duration) error {
	_, err := f.api.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &f.url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds(d),
	})
	return classify("change visibility", err)
}

func (f *feed) delete(ctx context.Context, m types.Message) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	_, err := f.api.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &f.url, ReceiptHandle: m.ReceiptHandle})
	if err != nil { // it comes again, which a wake-up may
		f.log.Warn("queue message could not be deleted", "message", aws.ToString(m.MessageId), "error", classify("delete", err))
	}
}

func (f *feed) report(m types.Message, err error) {
	log := f.log.With("message", aws.ToString(m.MessageId), "receives", receivesOf(m))
	if p, ok := errors.AsType[*queue.PanicError](err); ok {
		log = log.With("stack", string(p.Stack))
	}
	log.Warn("queue message failed", "error", err)
}

func messageOf(lane queue.Lane, m types.Message) queue.Message {
	return queue.Message{
		ID: aws.ToString(m.MessageId), Lane: lane, Group: groupOf(m),
		Body: []byte(aws.ToString(m.Body)), Receives: receivesOf(m),
	}
}

func groupOf(m types.Message) string {
	return m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)]
}

func receivesOf(m types.Message) int {
	n, err := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
	if err != nil {
		return 1
	}
	return n
}
