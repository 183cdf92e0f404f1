package sqs_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"laneway/shared/queue"
	"laneway/shared/queue/sqs"
)

func sender(t *testing.T, s *server) *sqs.Sender {
	t.Helper()
	out, err := sqs.New(s.client(), sqs.Config{QueueURLs: map[queue.Lane]string{queue.Main: "Q"}, TimerURL: "T"})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestMessagesOnTheWire(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	q := sender(t, s)
	if err := q.Send(t.Context(), queue.Main, "g", "d", []byte("x")); err != nil {
		t.Fatal(err)
	}
	want := []string{"send Q g/d 0s x"}
	for d, seconds := range map[time.Duration]string{
		0: "0", 1: "1", 999 * time.Millisecond: "1", time.Second: "1", time.Second + 1: "2", queue.MaxDelay: "900",
	} {
		if err := q.After(t.Context(), d, []byte("x")); err != nil {
			t.Fatal(err)
		}
		want = append(want, "send T / "+seconds+"s x")
	}
	got := s.until()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAnswersBecomeErrorsOfThePort(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	q := sender(t, s)
	for _, c := range []struct {
		failure
		throttled, invalid bool
	}{
		{failure{400, "OverLimit"}, true, false},
		{failure{400, "RequestThrottled"}, true, false},
		{failure{400, "ThrottlingException"}, true, false},
		{failure{400, "KmsThrottled"}, true, false},
		{failure{429, "Whatever"}, true, false},
		{failure{400, "InvalidMessageContents"}, false, true},
		{failure{400, "InvalidParameterValue"}, false, true},
		{failure{400, "AWS.SimpleQueueService.BatchRequestTooLong"}, false, true},
		{failure{400, "QueueDoesNotExist"}, false, false},
		{failure{403, "AccessDeniedException"}, false, false},
		{failure{500, "InternalFailure"}, false, false},
		{failure{503, "ServiceUnavailable"}, false, false},
	} {
		s.fail(c.failure, c.failure)
		for what, err := range map[string]error{
			"Send":  q.Send(t.Context(), queue.Main, "g", "d", []byte("x")),
			"After": q.After(t.Context(), 0, []byte("x")),
		} {
			if err == nil || errors.Is(err, queue.ErrThrottled) != c.throttled || errors.Is(err, queue.ErrInvalid) != c.invalid {
				t.Errorf("%s: %v: %v", what, c.failure, err)
			}
		}
	}
}

func TestQueuesAreMadeAsTheyAreDefined(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	q, err := sqs.CreateQueues(t.Context(), s.client(), "p", sqs.Settings{Visibility: 90 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	made := make(map[string]map[string]string)
	for _, l := range s.until() {
		words := strings.SplitN(l, " ", 3)
		var attributes map[string]string
		if err := json.Unmarshal([]byte(words[2]), &attributes); err != nil {
			t.Fatal(err)
		}
		made[words[1]] = attributes
	}
	if len(made) != 2*len(queue.Definitions())+2 {
		t.Errorf("made %d queues", len(made))
	}
	check := func(name, attribute, want string) {
		t.Helper()
		if got := made[name][attribute]; got != want {
			t.Errorf("%s of %s is %q, want %q", attribute, name, got, want)
		}
	}
	for _, d := range queue.Definitions() {
		live, dead := "p-"+string(d.Lane)+".fifo", "p-"+string(d.Lane)+"-dead.fifo"
		for _, name := range []string{live, dead} {
			check(name, "FifoQueue", "true")
			check(name, "DeduplicationScope", "messageGroup")
			check(name, "FifoThroughputLimit", "perMessageGroupId")
		}
		check(live, "VisibilityTimeout", "90")
		check(live, "RedrivePolicy", `{"deadLetterTargetArn":"arn:`+dead+`","maxReceiveCount":5}`)
		check(dead, "MessageRetentionPeriod", "1209600")
		if q.QueueURLs[d.Lane] != s.URL+"/"+live || q.Dead[d.Lane] != s.URL+"/"+dead {
			t.Errorf("URLs %q, %q", q.QueueURLs[d.Lane], q.Dead[d.Lane])
		}
	}
	check("p-timers", "FifoQueue", "")
	check("p-timers", "RedrivePolicy", `{"deadLetterTargetArn":"arn:p-timers-dead","maxReceiveCount":5}`)
	if q.TimerURL != s.URL+"/p-timers" || q.Dead[""] != s.URL+"/p-timers-dead" {
		t.Errorf("URLs %q, %q", q.TimerURL, q.Dead[""])
	}
}

func TestConfigsAreChecked(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	client := s.client()
	for name, c := range map[string]sqs.Config{
		"nothing":             {},
		"lane without a name": {QueueURLs: map[queue.Lane]string{"": "Q"}},
		"lane without a URL":  {QueueURLs: map[queue.Lane]string{queue.Main: ""}},
	} {
		if _, err := sqs.New(client, c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	good := sqs.Config{QueueURLs: map[queue.Lane]string{queue.Main: "Q"}}
	if _, err := sqs.New(nil, good); err == nil {
		t.Error("no client: accepted")
	}
	lanes := []queue.Def{{Lane: queue.Main, Concurrency: 1}}
	for name, c := range map[string]sqs.PollerConfig{
		"lane without a queue": {Config: good},
		"no concurrency":       {Config: good, Lanes: []queue.Def{{Lane: queue.Main}}},
		"short visibility":     {Config: good, Lanes: lanes, Visibility: time.Millisecond},
		"large batch":          {Config: good, Lanes: lanes, Batch: 11},
		"negative batch":       {Config: good, Lanes: lanes, Batch: -1},
		"negative timers":      {Config: good, Lanes: lanes, TimerConcurrency: -1},
	} {
		if _, err := sqs.NewPoller(client, c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := sqs.NewPoller(client, sqs.PollerConfig{Config: good, Lanes: lanes}); err != nil {
		t.Errorf("the least that is needed: %v", err)
	}
	if err := sender(t, s).Send(t.Context(), queue.Cron, "g", "d", []byte("x")); !errors.Is(err, queue.ErrInvalid) {
		t.Errorf("a lane that the sender does not know: %v", err)
	}
}
