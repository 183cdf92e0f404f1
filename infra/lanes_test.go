package main

import (
	"strings"
	"testing"

	"laneway/shared/queue"
)

func TestLanesAreThoseOfTheDefinitions(t *testing.T) {
	t.Parallel()
	tpl := synth(t)
	for _, d := range queue.Definitions() {
		id, r := tpl.named(t, "AWS::SQS::Queue", "QueueName", "laneway-"+string(d.Lane)+".fifo")
		for property, want := range map[string]any{
			"FifoQueue":            true,
			"DeduplicationScope":   "messageGroup",
			"FifoThroughputLimit":  "perMessageGroupId",
			"SqsManagedSseEnabled": true,
			"VisibilityTimeout":    float64(960), // the runner's 900 s and a margin; less would give a live runner's message away
		} {
			if got := r.Properties[property]; got != want {
				t.Errorf("%s: %s is %v, want %v", d.Lane, property, got, want)
			}
		}
		redrive := r.Properties["RedrivePolicy"].(map[string]any)
		if redrive["maxReceiveCount"] != float64(d.MaxReceives) || !strings.Contains(render(redrive["deadLetterTargetArn"]), "Lanesdead") {
			t.Errorf("%s: dead letters go by %v", d.Lane, redrive)
		}
		mapping := mappingOf(t, tpl, id)
		for property, want := range map[string]any{
			"BatchSize":             float64(1),
			"ScalingConfig":         map[string]any{"MaximumConcurrency": float64(d.Concurrency)},
			"FunctionResponseTypes": []any{"ReportBatchItemFailures"},
		} {
			if got := mapping.Properties[property]; render(got) != render(want) {
				t.Errorf("%s: the mapping's %s is %v, want %v", d.Lane, property, got, want)
			}
		}
	}
}

// A FIFO queue whose dead-letter queue is not one is refused at deployment.
func TestDeadLettersOfLanesAreFIFO(t *testing.T) {
	t.Parallel()
	_, r := synth(t).named(t, "AWS::SQS::Queue", "QueueName", "laneway-dead.fifo")
	if r.Properties["FifoQueue"] != true || r.Properties["MessageRetentionPeriod"] != float64(14*24*3600) {
		t.Errorf("got %v", r.Properties)
	}
}

func TestAMessageStaysHiddenLongerThanAnInvocation(t *testing.T) {
	t.Parallel()
	tpl := synth(t, "laneway.runner.timeout", "10", "laneway.notifier.timeout", "20")
	for name, want := range map[string]float64{"laneway-main.fifo": 70, "laneway-timers": 120} {
		if _, r := tpl.named(t, "AWS::SQS::Queue", "QueueName", name); r.Properties["VisibilityTimeout"] != want {
			t.Errorf("%s: %v s, want %v", name, r.Properties["VisibilityTimeout"], want)
		}
	}
}

func TestTheCapOfALaneIsTheCapOfItsMapping(t *testing.T) {
	t.Parallel()
	tpl := synth(t, "laneway.lane.cron", "3")
	id, _ := tpl.named(t, "AWS::SQS::Queue", "QueueName", "laneway-cron.fifo")
	if got := render(mappingOf(t, tpl, id).Properties["ScalingConfig"]); got != "map[MaximumConcurrency:3]" {
		t.Errorf("got %s", got)
	}
}

func TestTimersAreAStandardQueueWithItsOwnReceiver(t *testing.T) {
	t.Parallel()
	tpl := synth(t)
	id, r := tpl.named(t, "AWS::SQS::Queue", "QueueName", "laneway-timers")
	if r.Properties["FifoQueue"] != nil || r.Properties["RedrivePolicy"] == nil {
		t.Errorf("got %v", r.Properties)
	}
	m := mappingOf(t, tpl, id)
	if !strings.Contains(render(m.Properties["FunctionName"]), "notifier") {
		t.Errorf("timers go to %v", m.Properties["FunctionName"])
	}
	if m.Properties["MaximumBatchingWindowInSeconds"] != nil {
		t.Error("timers wait for a batch to fill")
	}
}

func TestEveryQueueRefusesPlainHTTPOnAWS(t *testing.T) {
	t.Parallel()
	tpl := synth(t)
	if queues, policies := len(tpl.of("AWS::SQS::Queue")), len(tpl.of("AWS::SQS::QueuePolicy")); queues != policies {
		t.Errorf("%d queues, %d policies", queues, policies)
	}
	for id, r := range tpl.of("AWS::SQS::QueuePolicy") {
		if text := render(r.Properties["PolicyDocument"]); !strings.Contains(text, "aws:SecureTransport:false") || !strings.Contains(text, "Effect:Deny") {
			t.Errorf("%s is %s", id, text)
		}
	}
}

// mappingOf gives the event source mapping of a queue.
func mappingOf(t *testing.T, tpl *template, queueID string) resource {
	t.Helper()
	for _, r := range tpl.of("AWS::Lambda::EventSourceMapping") {
		if render(r.Properties["EventSourceArn"]) == "<"+queueID+".Arn>" {
			return r
		}
	}
	t.Fatalf("nothing reads %s", queueID)
	return resource{}
}
