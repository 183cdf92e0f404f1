package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestFunctionsAreOfTheArchitectureAndSize(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		architecture string
		tpl          *template
	}{
		{"arm64", synth(t)},
		{"x86_64", synth(t, "laneway.architecture", "x86_64")},
	} {
		for name, size := range defaults().Sizes {
			row.tpl.has(t, "AWS::Lambda::Function", map[string]any{
				"FunctionName":  "laneway-" + name,
				"Architectures": []any{row.architecture},
				"Runtime":       "provided.al2023",
				"Handler":       "bootstrap",
				"MemorySize":    size.MemoryMB,
				"Timeout":       size.TimeoutSeconds,
			})
		}
	}
}

// The default stops a chain of queue and function after 16 rounds, which is a long
// run; elsewhere it must stay, as a chain there is a mistake.
func TestOnlyRunnerAndNotifierMayFeedThemselves(t *testing.T) {
	t.Parallel()
	for _, name := range Functions() {
		_, r := synth(t).named(t, "AWS::Lambda::Function", "FunctionName", "laneway-"+name)
		want := "Terminate"
		if name == Runner || name == Notifier {
			want = "Allow"
		}
		if got := r.Properties["RecursiveLoop"]; got != want {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
	}
}

func TestLogsEndAndGoWithTheStack(t *testing.T) {
	t.Parallel()
	tpl := synth(t, "laneway.log.days", "14")
	for _, name := range Functions() {
		id, r := tpl.named(t, "AWS::Logs::LogGroup", "LogGroupName", "/aws/lambda/laneway-"+name)
		if r.Properties["RetentionInDays"] != float64(14) || r.DeletionPolicy != "Delete" {
			t.Errorf("%s: %v days, %s", id, r.Properties["RetentionInDays"], r.DeletionPolicy)
		}
		_, f := tpl.named(t, "AWS::Lambda::Function", "FunctionName", "laneway-"+name)
		if got := render(f.Properties["LoggingConfig"]); !strings.Contains(got, id) {
			t.Errorf("%s logs to %s", name, got)
		}
	}
}

func TestAFunctionIsToldOfWhatItUses(t *testing.T) {
	t.Parallel()
	everywhere := []string{
		EnvBlobBucket, EnvLogLevel, EnvQueueCron, EnvQueueMain, EnvQueueSubagent, EnvStack,
		EnvStageCallback, EnvTablePrefix, EnvTimer, EnvTimeoutSeconds,
	}
	schedules := []string{EnvScheduleDLQ, EnvScheduleGroup, EnvScheduleRole, EnvSchedulerARN}
	for name, extra := range map[string][]string{
		Gateway: schedules, Runner: append([]string{EnvSecret}, schedules...), Notifier: nil, Scheduler: schedules, Watchdog: schedules,
	} {
		want := slices.Sorted(slices.Values(slices.Concat(everywhere, extra)))
		got := slices.Sorted(maps.Keys(environmentOf(t, synth(t), name)))
		if !slices.Equal(got, want) {
			t.Errorf("%s is told\n%v\nwant\n%v", name, got, want)
		}
	}
}

func TestTheModelIsToldWhereItIsChosen(t *testing.T) {
	t.Parallel()
	tpl := synth(t, "laneway.model", "bedrock/us.anthropic.claude-x-v1:0")
	for _, name := range Functions() {
		if got := environmentOf(t, tpl, name)[EnvModel]; got != "bedrock/us.anthropic.claude-x-v1:0" {
			t.Errorf("%s is told %v", name, got)
		}
	}
}

// TestSettingsReachTheFunctions: also those that only some of them read.
func TestSettingsReachTheFunctions(t *testing.T) {
	t.Parallel()
	tpl := synth(t, "laneway.queue", "collect cap:5", "laneway.inbound.debounce", "300ms; channel/slack: 1s", "laneway.session.reset", "daily@4,idle:60", "laneway.fallbacks", "openai/a, bedrock/b", "laneway.stuck.warn", "60", "laneway.fallback.skip", "60000")
	for _, name := range Functions() {
		env := environmentOf(t, tpl, name)
		for key, want := range map[string]any{
			EnvQueueRules: "collect cap:5", EnvInbound: "300ms; channel/slack: 1s", EnvReset: "daily@4,idle:60", EnvFallbacks: "openai/a, bedrock/b", EnvStuckWarn: "60000", EnvStuckAbort: nil, EnvFallbackSkip: "60000",
		} {
			if env[key] != want {
				t.Errorf("%s: %s is %v, want %v", name, key, env[key], want)
			}
		}
	}
}

// Keys and tokens stand in the secret alone, and the deployed secret is empty.
func TestNothingSecretIsInTheTemplate(t *testing.T) {
	t.Parallel()
	tpl := synth(t)
	secret := regexp.MustCompile(`(?i)(api[_-]?key|token|password)`)
	for _, name := range Functions() {
		for key := range environmentOf(t, tpl, name) {
			if secret.MatchString(key) {
				t.Errorf("%s has %s in its environment", name, key)
			}
		}
	}
	for id, r := range tpl.of("AWS::SecretsManager::Secret") {
		if r.Properties["SecretString"] != "{}" {
			t.Errorf("%s is deployed with a value", id)
		}
	}
}

// An unnamed rule, a wrong target or a disabled state would leave dead sessions be.
func TestTheWatchdogIsStartedEveryMinute(t *testing.T) {
	t.Parallel()
	tpl := synth(t)
	id, _ := tpl.named(t, "AWS::Lambda::Function", "FunctionName", "laneway-watchdog")
	_, r := tpl.named(t, "AWS::Events::Rule", "Name", "laneway-watchdog")
	if r.Properties["ScheduleExpression"] != "rate(1 minute)" || r.Properties["State"] != "ENABLED" {
		t.Errorf("got %v", r.Properties)
	}
	if got := render(r.Properties["Targets"]); !strings.Contains(got, id) {
		t.Errorf("it starts %s", got)
	}
	for _, c := range tpl.of("AWS::Lambda::EventInvokeConfig") {
		if render(c.Properties["FunctionName"]) == "<"+id+">" && c.Properties["MaximumRetryAttempts"] != float64(0) {
			t.Errorf("a failed sweep is repeated: %v", c.Properties)
		}
	}
}

func TestFailedSlotsArePutAside(t *testing.T) {
	t.Parallel()
	tpl := synth(t)
	id, _ := tpl.named(t, "AWS::Lambda::Function", "FunctionName", "laneway-scheduler")
	dead, _ := tpl.named(t, "AWS::SQS::Queue", "QueueName", "laneway-schedule-dead")
	for _, c := range tpl.of("AWS::Lambda::EventInvokeConfig") {
		if render(c.Properties["FunctionName"]) != "<"+id+">" {
			continue
		}
		if got := render(c.Properties["DestinationConfig"]); !strings.Contains(got, dead) {
			t.Errorf("they go to %s", got)
		}
		return
	}
	t.Error("the scheduler has no configuration for asynchronous events")
}

func environmentOf(t *testing.T, tpl *template, name string) map[string]any {
	t.Helper()
	_, r := tpl.named(t, "AWS::Lambda::Function", "FunctionName", "laneway-"+name)
	return r.Properties["Environment"].(map[string]any)["Variables"].(map[string]any)
}
