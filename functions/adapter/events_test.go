package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"laneway/functions/adapter"
	"laneway/shared/clock"
	"laneway/shared/clock/clocktest"
	"laneway/shared/connection"
	"laneway/shared/lane"
	"laneway/shared/push"
	"laneway/shared/queue"
	"laneway/shared/wiring"
)

// lookAgain is how long the gateway waits for the record of a connection.
const lookAgain = 50 * time.Millisecond

type (
	socketEvent   = events.APIGatewayWebsocketProxyRequest
	socketReply   = events.APIGatewayProxyResponse
	queueEvent    = events.SQSEvent
	scheduleEvent = events.EventBridgeEvent
)

// TestEvents_EachSampleAtEachAdapter: the right ones work, a wrong one is an error
// that says what it is not, and none is a panic.
func TestEvents_EachSampleAtEachAdapter(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir(samples)
	must(t, err)
	right := map[string][]string{
		"socket":    {"gateway-connect.json", "gateway-disconnect.json", "gateway-message.json"},
		"runner":    {"runner.json"},
		"notifier":  {"notifier.json"},
		"watchdog":  {"watchdog.json"},
		"scheduler": {"scheduler.json"},
	}
	kind := map[string]error{
		"socket": adapter.ErrEvent, "runner": adapter.ErrQueueEvent, "notifier": adapter.ErrQueueEvent, "watchdog": adapter.ErrScheduleEvent,
		"scheduler": adapter.ErrSlotEvent,
	}
	seen := 0
	for _, f := range files {
		if filepath.Ext(f.Name()) != ".json" {
			continue
		}
		seen++
		for name, mine := range right {
			t.Run(name+" "+f.Name(), func(t *testing.T) {
				t.Parallel()
				failed, err := setup(t).feed(t, name, f.Name())
				switch {
				case slices.Contains(mine, f.Name()):
					if err != nil || len(failed) > 0 {
						t.Fatalf("refused: %v, %v", err, failed)
					}
				case strings.HasPrefix(f.Name(), "runner") || strings.HasPrefix(f.Name(), "notifier"):
					// A queue's event at another queue's function: its messages fail, by id.
					if name == "runner" || name == "notifier" {
						if err != nil || len(failed) != 1 || failed[0].ItemIdentifier == "" {
							t.Fatalf("got %v, %v", failed, err)
						}
						return
					}
					fallthrough
				default:
					if !errors.Is(err, kind[name]) {
						t.Fatalf("got %v, want %v", err, kind[name])
					}
				}
			})
		}
	}
	if seen < 7 {
		t.Fatalf("%d samples", seen)
	}
}

// feed gives a sample to the adapter of a function.
func (s *stack) feed(t *testing.T, name, file string) ([]events.SQSBatchItemFailure, error) {
	t.Helper()
	ctx := t.Context()
	switch name {
	case "socket":
		_, err := s.socket.Handle(ctx, sample[socketEvent](t, file))
		return nil, err
	case "runner":
		q := &adapter.Queue{Log: quiet, Handle: adapter.Wake(&runner{})}
		res, err := q.Serve(ctx, sample[queueEvent](t, file))
		return res.BatchItemFailures, err
	case "notifier":
		q := &adapter.Queue{Log: quiet, Handle: func(ctx context.Context, m queue.Message) error { return s.core.Notify.HandleTimer(ctx, m.Body) }}
		res, err := q.Serve(ctx, sample[queueEvent](t, file))
		return res.BatchItemFailures, err
	case "scheduler":
		j := &adapter.Schedule{Jobs: s.core.Jobs, Log: quiet}
		return nil, j.Handle(ctx, raw(t, file))
	}
	w := &adapter.Watchdog{Lanes: &sweeper{}, Clock: clock.System{}}
	return nil, w.Handle(ctx, sample[scheduleEvent](t, file))
}

// TestEvents_BrokenOnesAreErrors: what no service of AWS sends, but a person who
// tries the function does.
func TestEvents_BrokenOnesAreErrors(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{}`, `null`, `{"requestContext":{"connectionId":"c"}}`, `{"requestContext":{"connectionId":"c","eventType":"OTHER"}}`,
		`{"requestContext":{"connectionId":"c","eventType":"MESSAGE"},"isBase64Encoded":true,"body":"%%%"}`,
		`{"Records":[]}`, `{"Records":[{"eventSource":"aws:s3"}]}`, `{"source":"aws.s3","detail-type":"Object Created"}`,
	} {
		s := setup(t)
		if _, err := s.socket.Handle(t.Context(), decoded[socketEvent](t, raw)); !errors.Is(err, adapter.ErrEvent) {
			t.Errorf("socket took %s: %v", raw, err)
		}
		q := &adapter.Queue{Log: quiet, Handle: func(context.Context, queue.Message) error { return nil }}
		if _, err := q.Serve(t.Context(), decoded[queueEvent](t, raw)); !errors.Is(err, adapter.ErrQueueEvent) {
			t.Errorf("queue took %s: %v", raw, err)
		}
		j := &adapter.Schedule{Jobs: s.core.Jobs, Log: quiet}
		if err := j.Handle(t.Context(), []byte(raw)); !errors.Is(err, adapter.ErrSlotEvent) {
			t.Errorf("scheduler took %s: %v", raw, err)
		}
		w := &adapter.Watchdog{Lanes: &sweeper{}, Clock: clock.System{}}
		if err := w.Handle(t.Context(), decoded[scheduleEvent](t, raw)); !errors.Is(err, adapter.ErrScheduleEvent) {
			t.Errorf("watchdog took %s: %v", raw, err)
		}
	}
}

// TestF30e_NothingIsPostedFromInsideConnect: until $connect returns there is nobody
// to post to, so the greeting is a timer; and a frame that comes before the record of
// its connection is visible is not lost.
func TestF30e_NothingIsPostedFromInsideConnect(t *testing.T) {
	t.Parallel()
	c := clocktest.New()
	c.Short = 0
	s := setup(t, func(set *wiring.Settings) { set.Clock = c })
	early := sample[socketEvent](t, "gateway-message.json")
	early.Body = `{"type":"req","id":"1","method":"health"}`
	type answer struct {
		res socketReply
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		res, err := s.socket.Handle(t.Context(), early) // no such connection yet
		answers <- answer{res, err}
	}()
	c.Waiting(t, 1) // it looked and found none
	res, err := s.socket.Handle(t.Context(), sample[socketEvent](t, "gateway-connect.json"))
	if err != nil || res.StatusCode != http.StatusOK || res.Body != "" {
		t.Fatalf("connect: %+v, %v", res, err)
	}
	if len(s.posts.frames) != 0 || len(s.queue.timers) != 1 {
		t.Fatalf("%d posts and %d timers", len(s.posts.frames), len(s.queue.timers))
	}
	c.Advance(lookAgain)
	first := <-answers
	if first.err != nil || !strings.Contains(first.res.Body, `"type":"res","id":"1"`) || strings.Contains(first.res.Body, "gone") {
		t.Fatalf("the early frame got %+v, %v", first.res, first.err)
	}
	must(t, s.core.Notify.HandleTimer(t.Context(), s.queue.timers[0]))
	to := s.posts.to[len(s.posts.to)-1]
	if want := "https://a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com/prod"; to.ConnectionID != "Lx1ExampleConn=" || to.Callback != want {
		t.Errorf("greeted at %+v", to)
	}
	if got := s.posts.frames[len(s.posts.frames)-1]; !strings.Contains(got, `"event":"connect.challenge"`) {
		t.Errorf("greeted with %s", got)
	}
	_, err = s.socket.Handle(t.Context(), sample[socketEvent](t, "gateway-disconnect.json"))
	must(t, err)
	if _, err := s.core.Connections.Load(t.Context(), "Lx1ExampleConn="); !errors.Is(err, connection.ErrGone) {
		t.Errorf("the record stays: %v", err)
	}
}

// TestF30a_BatchOfAFunction: what came before a failure in its group keeps the rest
// of it back, other groups go on, and failures are reported by id.
func TestF30a_BatchOfAFunction(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"error", "panic"} {
		r := &runner{fail: func(w lane.Wakeup) error {
			if w.Key != "m1" {
				return nil
			}
			if how == "panic" {
				panic(w.Key)
			}
			return errors.New("no")
		}}
		q := &adapter.Queue{Log: quiet, Handle: adapter.Wake(r)}
		ev := queueEvent{}
		for i, m := range []string{"g1:m1", "g1:m2", "g2:m3"} {
			group, key, _ := strings.Cut(m, ":")
			ev.Records = append(ev.Records, events.SQSMessage{
				MessageId: fmt.Sprint("id", i+1), EventSource: "aws:sqs", Body: fmt.Sprintf(`{"t":"t","k":%q,"l":"main"}`, key),
				Attributes: map[string]string{"MessageGroupId": group, "ApproximateReceiveCount": "2"},
			})
		}
		deadline := time.Now().Add(time.Hour)
		ctx, cancel := context.WithDeadline(t.Context(), deadline)
		res, err := q.Serve(ctx, ev)
		cancel()
		must(t, err)
		var failed, handled []string
		for _, f := range res.BatchItemFailures {
			failed = append(failed, f.ItemIdentifier)
		}
		for i, w := range r.wakes {
			handled = append(handled, w.Key)
			if !r.deadlines[i].Equal(deadline) {
				t.Errorf("%s: the end of the invocation is %v, told %v", how, deadline, r.deadlines[i])
			}
		}
		if !slices.Equal(handled, []string{"m1", "m3"}) || !slices.Equal(failed, []string{"id1", "id2"}) {
			t.Errorf("%s: handled %v, failed %v", how, handled, failed)
		}
	}
}

// TestSocket_FramesBehindTheResponse: the first frame of an event is the route's
// response, others are posted; what cannot be posted is handed on.
func TestSocket_FramesBehindTheResponse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		post  error
		later bool
		want  string // what is handed on
		fails bool
	}{
		{name: "posted"},
		{name: "gone", post: push.ErrGone},
		{name: "throttled, handed on", post: push.ErrThrottled, later: true, want: "ready"},
		{name: "throttled, nobody to hand it to", post: push.ErrThrottled, fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			var handed []string
			if c.later {
				s.socket.Later = func(_ context.Context, to push.Target, frames [][]byte) error {
					for _, f := range frames {
						handed = append(handed, to.ConnectionID+" "+string(f))
					}
					return nil
				}
			}
			ev := sample[socketEvent](t, "gateway-message.json")
			id := ev.RequestContext.ConnectionID
			must(t, s.core.Connections.Open(t.Context(), connection.Row{ID: id, Nonce: "n"}))
			must(t, s.core.Connections.Ready(t.Context(), id, connection.Principal{Tenant: "default", Scopes: []string{"operator.admin"}}, connection.Client{}))
			stopped := ev // a run that was stopped before it was accepted is answered twice at once
			stopped.Body = `{"type":"req","id":"0","method":"chat.abort","params":{"sessionKey":"main","runId":"sample-run-1"}}`
			stopped.RequestContext.RequestTimeEpoch = ev.RequestContext.RequestTimeEpoch + 1000
			_, err := s.socket.Handle(t.Context(), stopped)
			must(t, err)
			s.posts.fail = c.post
			res, err := s.socket.Handle(t.Context(), ev)
			if (err != nil) != c.fails {
				t.Fatalf("error: %v", err)
			}
			if !strings.Contains(res.Body, `"status":"accepted"`) {
				t.Errorf("response: %s", res.Body)
			}
			if posted := len(s.posts.frames); (posted == 1) != (c.post == nil) {
				t.Errorf("%d frames posted", posted)
			}
			if (len(handed) == 1) != (c.want != "") {
				t.Errorf("handed on: %v", handed)
			}
		})
	}
}

func TestR3_TheWatchdogLooksThreeTimesWhileAnythingIsActive(t *testing.T) {
	t.Parallel()
	for active, want := range map[int]int{0: 1, 1: 3} {
		c := clocktest.New()
		c.Short = time.Minute // its pauses end at once
		s := &sweeper{active: active}
		w := &adapter.Watchdog{Lanes: s, Clock: c}
		must(t, w.Handle(t.Context(), sample[scheduleEvent](t, "watchdog.json")))
		if s.swept != want {
			t.Errorf("%d active: %d looks, want %d", active, s.swept, want)
		}
	}
	s := &sweeper{active: 1, err: errors.New("no")}
	w := &adapter.Watchdog{Lanes: s, Clock: clock.System{}}
	if err := w.Handle(t.Context(), sample[scheduleEvent](t, "watchdog.json")); err == nil {
		t.Error("a failed sweep is silent")
	}
}
