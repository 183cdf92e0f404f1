package adapter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"laneway/shared/lane"
	"laneway/shared/queue"
)

// Runner handles wake-ups. *loop.Runner is one.
type Runner interface {
	Handle(ctx context.Context, w lane.Wakeup, deadline time.Time) error
}

// Wake is the handler of a lane's messages.
func Wake(r Runner) queue.Handler {
	return func(ctx context.Context, m queue.Message) error {
		w, err := lane.ParseWakeup(m.Body)
		if err != nil {
			return err
		}
		deadline, _ := ctx.Deadline() // the end of the invocation; on one machine there is none
		return r.Handle(ctx, w, deadline)
	}
}

// Queue serves an event of a queue: messages in their order, failures by id, so
// that one message does not take others with it.
type Queue struct {
	Handle queue.Handler
	Log    *slog.Logger // nil: the default logger
}

// ErrQueueEvent is an event that is not of a queue.
var ErrQueueEvent = errors.New("adapter: not an event of a queue")

// Serve implements the function's handler.
func (q *Queue) Serve(ctx context.Context, ev events.SQSEvent) (events.SQSEventResponse, error) {
	if len(ev.Records) == 0 {
		return events.SQSEventResponse{}, fmt.Errorf("%w: it has no records", ErrQueueEvent)
	}
	log := q.Log
	if log == nil {
		log = slog.Default()
	}
	messages := make([]queue.Message, len(ev.Records))
	for i, r := range ev.Records {
		if r.EventSource != "" && r.EventSource != "aws:sqs" {
			return events.SQSEventResponse{}, fmt.Errorf("%w: its source is %q", ErrQueueEvent, r.EventSource)
		}
		n, _ := strconv.Atoi(r.Attributes["ApproximateReceiveCount"])
		messages[i] = queue.Message{ID: r.MessageId, Group: r.Attributes["MessageGroupId"], Body: []byte(r.Body), Receives: n}
	}
	failed := queue.Batch(ctx, messages, q.Handle, func(m queue.Message, err error) {
		log.Error("message failed", "id", m.ID, "receives", m.Receives, "err", err)
	})
	res := events.SQSEventResponse{BatchItemFailures: make([]events.SQSBatchItemFailure, len(failed))}
	for i, id := range failed {
		res.BatchItemFailures[i].ItemIdentifier = id
	}
	return res, nil
}
