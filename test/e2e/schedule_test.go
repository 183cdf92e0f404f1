package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"laneway/shared/awsscheduler"
	"laneway/shared/cron"
	"laneway/shared/protocol"
	"laneway/test/mockmodel"
)

// soon is how far ahead a job's slot is: long enough to be put on the schedule.
const soon = 5 * time.Second

// firesWithin is how late a slot may be: endpoints look at schedules every ten seconds
// or so, AWS within the minute.
const firesWithin = 90 * time.Second

// scheduled has one job fired by its schedule and one whose slot is also delivered
// twice more, at once: either way it is one run.
func scheduled(t *testing.T, s *stack) {
	if status := s.probe(t, "scheduler", "/schedule-groups"); status != http.StatusOK {
		lacksf(t, "the endpoint has no EventBridge Scheduler (HTTP %d)", status)
	}
	l := s.dial(t)
	t.Run("a job fires on its schedule", func(t *testing.T) {
		job, slot := hourly(t, l, "by the schedule")
		w := l.wait(t, cron.RunID(job.ID, slot), firesWithin)
		if w.Status != protocol.StatusOK || w.TerminalReply == nil || !strings.Contains(w.TerminalReply.Text, "by the schedule") {
			t.Fatalf("%+v", w)
		}
		late := time.UnixMilli(w.StartedAt).Sub(slot)
		if late < 0 {
			t.Errorf("it began %v early", -late)
		}
		figure(t, s.Level, "slot of a job to the start of its run", []time.Duration{late})
		once(t, l, s.model, job, "by the schedule")
	})
	t.Run("a slot that is delivered again is one run", func(t *testing.T) {
		job, slot := hourly(t, l, "three times")
		poll(t, 2*soon, "the slot does not come", func() bool { return !time.Now().Before(slot) })
		event, err := json.Marshal(awsscheduler.Event{
			Tenant: "default", JobID: job.ID, Slot: slot.UTC().Format(time.RFC3339Nano), ExecutionID: "again", Attempt: "1",
		})
		if err != nil {
			t.Fatal(err)
		}
		deliver := func() {
			out, err := lambda.NewFromConfig(s.aws).Invoke(t.Context(), &lambda.InvokeInput{
				FunctionName: aws.String(s.name + "-scheduler"), Payload: event,
			})
			if err != nil || out.FunctionError != nil {
				t.Errorf("invoke: %v, %s", err, out.Payload)
			}
		}
		var wg sync.WaitGroup
		wg.Go(deliver)
		wg.Go(deliver)
		wg.Wait()
		if w := l.wait(t, cron.RunID(job.ID, slot), firesWithin); w.Status != protocol.StatusOK {
			t.Fatalf("%+v", w)
		}
		deliver() // and when it has ended
		once(t, l, s.model, job, "three times")
	})
}

// hourly adds a job whose first slot is soon and whose next one is far away.
func hourly(t *testing.T, l *listener, message string) (protocol.CronJob, time.Time) {
	t.Helper()
	// Whole seconds: a schedule has no finer ones.
	first := time.Now().Add(soon).Truncate(time.Second).UnixMilli()
	hour := time.Hour.Milliseconds()
	var job protocol.CronJob
	l.call(t, "cron.add", protocol.CronAddParams{
		Name: message, Schedule: protocol.CronSchedule{Kind: "every", EveryMs: &hour, AnchorMs: &first},
		Payload: protocol.CronPayload{Kind: "agentTurn", Message: message}, SessionTarget: "isolated",
	}, &job)
	if job.State.NextRunAtMs != first {
		t.Fatalf("due at %d, not at %d", job.State.NextRunAtMs, first)
	}
	return job, time.UnixMilli(first)
}

// once wants one run in the job's history, and one call of the model for it.
func once(t *testing.T, l *listener, model *mockmodel.Server, job protocol.CronJob, message string) {
	t.Helper()
	var runs protocol.CronRuns
	poll(t, patience, "the run is not in the history", func() bool {
		l.call(t, "cron.runs", protocol.CronRunsParams{ID: job.ID}, &runs)
		return len(runs.Entries) > 0
	})
	calls := 0
	for _, r := range model.Requests() {
		if strings.Contains(r.LastUser(), message) {
			calls++
		}
	}
	if len(runs.Entries) != 1 || runs.Entries[0].Status != protocol.StatusOK || calls != 1 {
		t.Errorf("%d calls of the model; history: %+v", calls, runs.Entries)
	}
}
