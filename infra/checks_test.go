package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
)

// endpoint is the configuration for a stand-in for AWS.
var endpoint = []string{
	"laneway.emulator", "true", "laneway.two.way", "false", "laneway.architecture", "x86_64", "laneway.removal", "destroy",
}

func TestNothingIsFoundByTheAwsSolutionsRules(t *testing.T) {
	t.Parallel()
	for name, tpl := range map[string]*template{
		"default":  synth(t),
		"endpoint": synth(t, endpoint...),
		"bedrock":  synth(t, "laneway.model", "bedrock/eu.anthropic.claude-x-v1:0"),
	} {
		for _, finding := range found(tpl) {
			t.Errorf("%s: %s", name, finding)
		}
	}
}

// found lists what the rules have marked on the stack.
func found(tpl *template) []string {
	jsiiLock.Lock()
	defer jsiiLock.Unlock()
	var out []string
	rule := assertions.Match_StringLikeRegexp(jsii.String("AwsSolutions-.*"))
	for _, m := range append(*tpl.notes.FindError(jsii.String("*"), rule), *tpl.notes.FindWarning(jsii.String("*"), rule)...) {
		out = append(out, fmt.Sprint(m.Entry.Data)) //nolint:staticcheck // its new home has no Go module yet
	}
	return out
}

func TestEverySuppressionHasAReason(t *testing.T) {
	t.Parallel()
	raw := synth(t).text
	if n := strings.Count(raw, `"rules_to_suppress"`); n == 0 {
		t.Fatal("suppressions have left no trace in the template")
	}
	for _, tpl := range []*template{synth(t), synth(t, endpoint...)} {
		for chunk := range strings.SplitSeq(tpl.text, `"rules_to_suppress"`) {
			for line := range strings.SplitSeq(chunk, "\n") {
				reason, ok := strings.CutPrefix(strings.TrimSpace(line), `"reason": "`)
				if ok && len(reason) < 25 {
					t.Errorf("%q is no reason", reason)
				}
			}
		}
	}
}

// The grants of an endpoint are wider by one group of schedules; AWS must not get that.
func TestWhatAnEndpointNeedsStaysThere(t *testing.T) {
	t.Parallel()
	if strings.Contains(synth(t).text, "schedule/default/") {
		t.Error("a stack on AWS may touch schedules of the default group")
	}
	if tpl := synth(t, endpoint...); !strings.Contains(tpl.text, "schedule/default/") || len(tpl.of("AWS::SQS::QueuePolicy")) != 0 {
		t.Error("an endpoint would refuse the functions' calls")
	}
}

func TestAlarmsCoverWhatSomebodyMustLookAt(t *testing.T) {
	t.Parallel()
	tpl := synth(t)
	for _, name := range []string{
		"main-age", "cron-age", "subagent-age", "timers-age", "lanes-dead", "timers-dead", "schedules-dead", "stuck-sessions",
		"runner-errors", "notifier-errors", "scheduler-errors", "watchdog-errors", "runner-throttles", "notifier-throttles", "integration-errors",
	} {
		_, r := tpl.named(t, "AWS::CloudWatch::Alarm", "AlarmName", "laneway-"+name)
		if r.Properties["TreatMissingData"] != "notBreaching" {
			t.Errorf("%s fires on an idle stack", name)
		}
		if actions := texts(r.Properties["AlarmActions"]); len(actions) != 1 || !strings.Contains(actions[0], "alarms") {
			t.Errorf("%s tells %v", name, actions)
		}
		if r.Properties["AlarmDescription"] == "" {
			t.Errorf("%s does not say what it means", name)
		}
	}
	tpl.has(t, "AWS::CloudWatch::Alarm", map[string]any{
		"Namespace": "Laneway", "MetricName": "StuckSessions",
		"Dimensions": []any{map[string]any{"Name": "Stack", "Value": "laneway"}},
	})
}

// Each alarm costs money every month: an operator may have fewer, and then has those
// that say that work is not done.
func TestAlarmsCanBeFewer(t *testing.T) {
	t.Parallel()
	few := synth(t, "laneway.alarms", "few")
	for _, name := range []string{"main-age", "lanes-dead", "stuck-sessions", "integration-errors", "watchdog-errors"} {
		few.named(t, "AWS::CloudWatch::Alarm", "AlarmName", "laneway-"+name)
	}
	for set, want := range map[string]int{"all": 15, "few": 5, "none": 0} {
		if n := len(synth(t, "laneway.alarms", set).of("AWS::CloudWatch::Alarm")); n != want {
			t.Errorf("%s: %d alarms, want %d", set, n, want)
		}
	}
}

// A policy of one's own replaces the one that lets CloudWatch in.
func TestAlarmsReachTheTopicAndTheMail(t *testing.T) {
	t.Parallel()
	tpl := synth(t, "laneway.alarm.mail", "ops@example.com")
	for id, r := range tpl.of("AWS::SNS::TopicPolicy") {
		if text := render(r.Properties["PolicyDocument"]); !strings.Contains(text, "cloudwatch.amazonaws.com") || !strings.Contains(text, "aws:SourceAccount") {
			t.Errorf("%s is %s", id, text)
		}
	}
	tpl.has(t, "AWS::SNS::Subscription", map[string]any{"Protocol": "email", "Endpoint": "ops@example.com"})
	if n := len(synth(t).of("AWS::SNS::Subscription")); n != 0 {
		t.Errorf("without a mail address there are %d subscriptions", n)
	}
}
