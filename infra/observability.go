package main

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"laneway/shared/queue"
)

// Observability is a dashboard, the alarms, and the topic that they go to.
//
// Each alarm looks at one metric, which is also what CloudWatch bills: an alarm over
// a sum would cost as much as one for each of its parts, and say less.
type Observability struct {
	scope  constructs.Construct
	Topic  awssns.Topic
	config Config
}

// Namespace and names of the metrics that the functions write through their logs,
// each with the dimension Stack. Absent means zero: an idle stack writes none.
const (
	MetricNamespace = "Laneway"
	MetricDimension = "Stack"
	MetricEnded     = "RunsEnded"
	MetricFailed    = "RunsFailed"     // of them, with an error or out of time
	MetricQueueWait = "QueueWait"      // ms from accept to start
	MetricRunTime   = "RunTime"        // ms from start to end
	MetricSteps     = "Steps"          // model calls
	MetricPosts     = "Posts"          // messages to connections that runs needed
	MetricStuck     = "StuckSessions"  // found by a sweep with work and nobody at it
	MetricFallback  = "SteerFallbacks" // messages for a run that had just ended
)

// NewObservability builds it over the parts of a stack.
func NewObservability(scope constructs.Construct, parts *Parts, runner, watchdog Function) Observability {
	o := Observability{scope: constructs.NewConstruct(scope, jsii.String("Observability")), config: parts.Config}
	o.Topic = o.newTopic()
	functions := map[string]Function{
		Gateway: parts.Front.Gateway, Runner: runner, Notifier: parts.Timers.Notifier,
		Scheduler: parts.Schedule.Scheduler, Watchdog: watchdog,
	}
	for _, a := range o.alarms(parts, functions) {
		if o.wanted(a) {
			o.add(a)
		}
	}
	o.newDashboard(parts, functions)
	return o
}

// newTopic builds the topic. Its policy replaces the one that SNS would give it, so
// it must let CloudWatch in by itself.
func (o Observability) newTopic() awssns.Topic {
	t := awssns.NewTopic(o.scope, jsii.String("alarms"), &awssns.TopicProps{
		TopicName: jsii.String(o.config.Name + "-alarms"), EnforceSSL: jsii.Bool(true),
	})
	t.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid:        jsii.String("AlarmsOfThisAccount"),
		Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(jsii.String("cloudwatch.amazonaws.com"), nil)},
		Actions:    list([]string{"sns:Publish"}),
		Resources:  &[]*string{t.TopicArn()},
		Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": awscdk.Aws_ACCOUNT_ID()}},
	}))
	if o.config.AlarmMail != "" {
		t.AddSubscription(awssnssubscriptions.NewEmailSubscription(jsii.String(o.config.AlarmMail), nil))
	}
	return t
}

// fewAlarms say that work is not done, whatever the reason. The others say why, or say
// it earlier. The watchdog's errors are among them because it finds what the rest of
// them do not.
var fewAlarms = []string{"main-age", "lanes-dead", "stuck-sessions", "integration-errors", "watchdog-errors"}

func (o Observability) wanted(a alarm) bool {
	switch o.config.Alarms {
	case NoAlarms:
		return false
	case FewAlarms:
		return slices.Contains(fewAlarms, a.name)
	case AllAlarms:
	}
	return true
}

// alarm is an alarm as data.
type alarm struct {
	name      string
	meaning   string // what has happened and what to look at first
	metric    awscloudwatch.IMetric
	threshold float64 // reached is too much
	minutes   float64 // in a row
}

func (o Observability) alarms(parts *Parts, f map[string]Function) []alarm {
	out := []alarm{
		{
			"timers-age", "Timers are late by a minute: challenges and answers to waits come late. Look at the notifier's log.",
			parts.Timers.Queue.MetricApproximateAgeOfOldestMessage(each("Maximum")), 60, 3,
		},
		{
			"stuck-sessions", "Sweeps keep finding sessions with work and nobody at it: waking them does not help. Look at the watchdog's log.",
			o.own(MetricStuck, "Maximum"), 1, 5,
		},
		{
			"integration-errors", "Frames are not answered: the gateway function fails, is throttled or takes longer than 29 s.",
			o.api(parts, "IntegrationError"), 5, 5,
		},
	}
	for _, d := range queue.Definitions() {
		out = append(out, alarm{
			string(d.Lane) + "-age", "A wake-up waits for ten minutes: the lane's cap or the account's concurrency is used up, or the runner fails.",
			parts.Lanes.Queues[d.Lane].MetricApproximateAgeOfOldestMessage(each("Maximum")), 600, 5,
		})
	}
	for _, dead := range []struct {
		name  string
		queue awssqs.Queue
	}{{"lanes", parts.Lanes.Dead}, {"timers", parts.Timers.Dead}, {"schedules", parts.Schedule.Dead}} {
		out = append(out, alarm{
			dead.name + "-dead", "A message failed too often and was put aside. Its body says which session it was for; the watchdog wakes that by itself.",
			dead.queue.MetricApproximateNumberOfMessagesVisible(each("Maximum")), 1, 1,
		})
	}
	// The gateway's failures are counted by API Gateway, as integration errors.
	for _, name := range []string{Runner, Notifier, Scheduler, Watchdog} {
		out = append(out, alarm{
			name + "-errors", "Invocations keep failing. A failed one is tried again, so nothing is lost by it yet. Look at the function's log.",
			f[name].MetricErrors(each("Sum")), 3, 5,
		})
	}
	for _, name := range []string{Runner, Notifier} {
		out = append(out, alarm{
			name + "-throttles", "The account's concurrency is used up: work starts late. Ask for a higher quota or lower the lanes' caps.",
			f[name].MetricThrottles(each("Sum")), 5, 5,
		})
	}
	return out
}

func (o Observability) add(a alarm) {
	awscloudwatch.NewAlarm(o.scope, jsii.String(a.name), &awscloudwatch.AlarmProps{
		AlarmName:          jsii.String(o.config.Name + "-" + a.name),
		AlarmDescription:   jsii.String(a.meaning),
		Metric:             a.metric,
		Threshold:          jsii.Number(a.threshold),
		EvaluationPeriods:  jsii.Number(a.minutes),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
	}).AddAlarmAction(awscloudwatchactions.NewSnsAction(o.Topic))
}

// own is a metric that the functions write.
func (o Observability) own(name, statistic string) awscloudwatch.Metric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String(MetricNamespace), MetricName: jsii.String(name),
		DimensionsMap: &map[string]*string{MetricDimension: jsii.String(o.config.Name)},
		Statistic:     jsii.String(statistic), Period: minute(),
	})
}

// api is a count of the WebSocket stage.
func (o Observability) api(parts *Parts, name string) awscloudwatch.Metric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String("AWS/ApiGateway"), MetricName: jsii.String(name),
		DimensionsMap: &map[string]*string{"ApiId": parts.Front.API.ApiId(), "Stage": jsii.String(o.config.Stage)},
		Statistic:     jsii.String("Sum"), Period: minute(),
	})
}

func (o Observability) newDashboard(parts *Parts, f map[string]Function) {
	var errors, durations, depth []awscloudwatch.IMetric
	for _, name := range Functions() {
		errors = append(errors, f[name].MetricErrors(each("Sum")), f[name].MetricThrottles(each("Sum")))
		durations = append(durations, f[name].MetricDuration(each("p95")))
	}
	for _, d := range queue.Definitions() {
		q := parts.Lanes.Queues[d.Lane]
		depth = append(depth, q.MetricApproximateNumberOfMessagesVisible(each("Maximum")), q.MetricApproximateAgeOfOldestMessage(each("Maximum")))
	}
	depth = append(depth, parts.Timers.Queue.MetricApproximateAgeOfOldestMessage(each("Maximum")))
	own := func(statistic string, names ...string) []awscloudwatch.IMetric {
		var out []awscloudwatch.IMetric
		for _, name := range names {
			out = append(out, o.own(name, statistic))
		}
		return out
	}
	rows := [][]awscloudwatch.IWidget{
		{
			graph("Runs", own("Sum", MetricEnded, MetricFailed, MetricSteps, MetricFallback)),
			graph("Waiting and running, ms", append(own("p50", MetricQueueWait, MetricRunTime), own("p95", MetricQueueWait, MetricRunTime)...)),
		},
		{
			graph("Lanes and timers", depth),
			graph("Put aside and stuck", append([]awscloudwatch.IMetric{
				parts.Lanes.Dead.MetricApproximateNumberOfMessagesVisible(each("Maximum")),
				parts.Timers.Dead.MetricApproximateNumberOfMessagesVisible(each("Maximum")),
				parts.Schedule.Dead.MetricApproximateNumberOfMessagesVisible(each("Maximum")),
			}, own("Maximum", MetricStuck)...)),
		},
		{
			graph("Connections and frames", []awscloudwatch.IMetric{
				o.api(parts, "ConnectCount"), o.api(parts, "MessageCount"),
				o.api(parts, "ClientError"), o.api(parts, "IntegrationError"),
				o.own(MetricPosts, "Sum"),
			}),
			graph("Errors and throttles", errors),
		},
		{graph("Duration p95, ms", durations)},
	}
	d := awscloudwatch.NewDashboard(o.scope, jsii.String("dashboard"), &awscloudwatch.DashboardProps{DashboardName: jsii.String(o.config.Name)})
	for _, row := range rows {
		d.AddWidgets(row...)
	}
}

func graph(title string, metrics []awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: jsii.String(title), Width: jsii.Number(12), Height: jsii.Number(6), Left: &metrics,
	})
}

// each is the statistic of a metric over a minute.
func each(statistic string) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: jsii.String(statistic), Period: minute()}
}

func minute() awscdk.Duration { return awscdk.Duration_Minutes(jsii.Number(1)) }
