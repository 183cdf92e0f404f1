package awsscheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.uber.org/goleak"

	"laneway/shared/awsscheduler"
	"laneway/shared/clock/clocktest"
	"laneway/shared/cron"
	"laneway/shared/id"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service speaks the protocol of EventBridge Scheduler.
type service struct {
	mu   sync.Mutex
	made map[string]map[string]any // by group and name
	fail int
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, ok := strings.CutPrefix(r.URL.Path, "/schedules/")
	raw, err := io.ReadAll(r.Body)
	if !ok || err != nil {
		http.Error(w, "{}", http.StatusNotFound)
		return
	}
	refuse := func(status int, kind string) {
		w.Header().Set("X-Amzn-Errortype", kind)
		w.WriteHeader(status)
		fmt.Fprint(w, `{"Message":"no"}`)
	}
	if s.fail != 0 {
		refuse(s.fail, "ValidationException")
		return
	}
	switch r.Method {
	case http.MethodPost:
		var body map[string]any
		if err := json.Unmarshal(raw, &body); err != nil {
			http.Error(w, "{}", http.StatusBadRequest)
			return
		}
		key := fmt.Sprint(body["GroupName"], "/", name)
		if s.made[key] != nil {
			refuse(http.StatusConflict, "ConflictException")
			return
		}
		s.made[key] = body
		fmt.Fprint(w, `{"ScheduleArn":"arn"}`)
	case http.MethodDelete:
		key := r.URL.Query().Get("groupName") + "/" + name
		if s.made[key] == nil {
			refuse(http.StatusNotFound, "ResourceNotFoundException")
			return
		}
		delete(s.made, key)
		fmt.Fprint(w, `{}`)
	}
}

// one is the only schedule that there is.
func (s *service) one(t *testing.T) (key string, body map[string]any) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.made) != 1 {
		t.Fatalf("%d schedules", len(s.made))
	}
	for key, body = range s.made {
	}
	return key, body
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func setup(t *testing.T) (*awsscheduler.Scheduler, *service, *clocktest.Manual) {
	t.Helper()
	s := &service{made: make(map[string]map[string]any)}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	client := scheduler.New(scheduler.Options{
		BaseEndpoint: &srv.URL, Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		HTTPClient: srv.Client(), RetryMaxAttempts: 1,
	})
	c := clocktest.New()
	a, err := awsscheduler.New(client, awsscheduler.Config{Group: "laneway", RoleARN: "arn:role", TargetARN: "arn:target", DeadARN: "arn:dead", Clock: c})
	must(t, err)
	return a, s, c
}

func TestPut_IsOneScheduleOfOneTime(t *testing.T) {
	t.Parallel()
	a, s, c := setup(t)
	slot := cron.Slot{Tenant: "acme", JobID: "a job: of any & <name>", At: c.Now().Add(time.Hour)}
	for range 3 { // the same slot again changes nothing
		must(t, a.Put(t.Context(), slot))
	}
	key, body := s.one(t)
	if name := strings.TrimPrefix(key, "laneway/"); name == key || len(name) > 64 || strings.Trim(name, "0123456789abcdef-") != "" {
		t.Errorf("name %q", key)
	}
	target, _ := body["Target"].(map[string]any)
	if body["ScheduleExpression"] != "at(2026-03-01T13:00:00)" || body["ActionAfterCompletion"] != "DELETE" ||
		fmt.Sprint(body["FlexibleTimeWindow"]) != "map[Mode:OFF]" || target["Arn"] != "arn:target" || target["RoleArn"] != "arn:role" ||
		fmt.Sprint(target["DeadLetterConfig"]) != "map[Arn:arn:dead]" {
		t.Errorf("schedule %v", body)
	}
	input, _ := target["Input"].(string)
	var e awsscheduler.Event
	must(t, json.Unmarshal([]byte(input), &e))
	if e.Tenant != slot.Tenant || e.JobID != slot.JobID || !strings.Contains(input, `"slot":"<aws.scheduler.scheduled-time>"`) {
		t.Errorf("input %s", input)
	}
	must(t, a.Delete(t.Context(), slot))
	must(t, a.Delete(t.Context(), slot))
	if len(s.made) > 0 {
		t.Errorf("left %v", s.made)
	}
}

// A schedule is to the second and must not be early, nor in the past.
func TestPut_Times(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]string{
		time.Hour + time.Millisecond: "at(2026-03-01T13:00:01)", 90 * time.Second: "at(2026-03-01T12:01:30)",
		0: "at(2026-03-01T12:00:01)", -time.Hour: "at(2026-03-01T12:00:01)", time.Millisecond: "at(2026-03-01T12:00:01)",
	} {
		a, s, c := setup(t)
		must(t, a.Put(t.Context(), cron.Slot{Tenant: "acme", JobID: "j", At: c.Now().Add(ahead)}))
		if _, body := s.one(t); body["ScheduleExpression"] != want {
			t.Errorf("%v ahead: %v, want %s", ahead, body["ScheduleExpression"], want)
		}
	}
}

func TestErrorsAreTold(t *testing.T) {
	t.Parallel()
	a, s, c := setup(t)
	s.fail = http.StatusBadRequest
	slot := cron.Slot{Tenant: "acme", JobID: "j", At: c.Now()}
	if a.Put(t.Context(), slot) == nil || a.Delete(t.Context(), slot) == nil {
		t.Error("no error")
	}
	for _, c := range []awsscheduler.Config{{}, {Group: "g"}, {Group: "g", RoleARN: "r"}, {RoleARN: "r", TargetARN: "t"}} {
		if _, err := awsscheduler.New(nil, c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

// On an endpoint: a slot fires once, at its time, with an event that the scheduler
// function reads; one that was taken back does not.
func TestOnTheEndpoint(t *testing.T) {
	t.Parallel()
	if os.Getenv("AWS_ENDPOINT_URL") == "" {
		t.Skip("not run: schedules on an endpoint need AWS_ENDPOINT_URL (make endpoint)")
	}
	wire := awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) { tr.DisableKeepAlives = true })
	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithHTTPClient(wire))
	must(t, err)
	client, queues, name := scheduler.NewFromConfig(cfg), sqs.NewFromConfig(cfg), "t"+id.UUID()[:8]
	_, err = client.CreateScheduleGroup(t.Context(), &scheduler.CreateScheduleGroupInput{Name: &name})
	must(t, err)
	q, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	must(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_, err := client.DeleteScheduleGroup(ctx, &scheduler.DeleteScheduleGroupInput{Name: &name})
		_, qerr := queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: q.QueueUrl})
		if err := errors.Join(err, qerr); err != nil {
			t.Error(err)
		}
	})
	attrs, err := queues.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: q.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn}})
	must(t, err)
	a, err := awsscheduler.New(client, awsscheduler.Config{
		Group: name, RoleARN: "arn:aws:iam::000000000000:role/test", TargetARN: attrs.Attributes["QueueArn"],
	})
	must(t, err)
	now := time.Now()
	back := cron.Slot{Tenant: "acme", JobID: "taken-back", At: now}
	must(t, a.Put(t.Context(), back))
	must(t, a.Delete(t.Context(), back))
	for range 2 {
		must(t, a.Put(t.Context(), cron.Slot{Tenant: "acme", JobID: "j", At: now}))
	}
	var got []types.Message
	for end := now.Add(90 * time.Second); len(got) == 0 && time.Now().Before(end); {
		out, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: q.QueueUrl, WaitTimeSeconds: 10, MaxNumberOfMessages: 10})
		must(t, err)
		got = out.Messages
	}
	if len(got) != 1 {
		t.Fatalf("%d events", len(got))
	}
	var e awsscheduler.Event
	must(t, json.Unmarshal([]byte(aws.ToString(got[0].Body)), &e))
	if e.Tenant != "acme" || e.JobID != "j" || e.Slot == "" {
		t.Errorf("event %+v", e)
	}
}
