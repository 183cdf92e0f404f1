// Package setup reads a function's environment and builds what it needs from it:
// clients, ports, services. It is the only place that knows the variables' names.
//
// Guarantees: the environment is read once, when the process starts; an error names
// the variable; secrets come from the secret store, once, and reach neither the
// environment nor a log. With AWS_ENDPOINT_URL set, nothing but that endpoint is
// called.
package setup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"laneway/shared/awsscheduler"
	"laneway/shared/blob/s3"
	"laneway/shared/clock"
	"laneway/shared/diag"
	"laneway/shared/model"
	"laneway/shared/model/choose"
	"laneway/shared/model/profile"
	"laneway/shared/model/route"
	"laneway/shared/push/apigw"
	"laneway/shared/queue"
	"laneway/shared/queue/sqs"
	"laneway/shared/queueing"
	"laneway/shared/session"
	"laneway/shared/table/dynamo"
	"laneway/shared/upload/s3sign"
	"laneway/shared/wiring"
)

// Version of the deployed code, told to clients. It is set when the code is built.
var Version = "dev"

// Env is a function's environment.
type Env struct {
	Stack       string // LANEWAY_STACK
	TablePrefix string // LANEWAY_TABLE_PREFIX
	QueueMain   string // LANEWAY_QUEUE_MAIN_URL
	QueueCron   string // LANEWAY_QUEUE_CRON_URL
	QueueSub    string // LANEWAY_QUEUE_SUBAGENT_URL
	Timer       string // LANEWAY_TIMER_URL
	BlobBucket  string // LANEWAY_BLOB_BUCKET
	Model       string // LANEWAY_MODEL
	Fallbacks   string // LANEWAY_FALLBACKS: provider/id, by commas; empty: those of the configuration
	SecretARN   string // LANEWAY_SECRET_ARN; empty: no secret
	LogLevel    string // LANEWAY_LOG_LEVEL; empty: info
	Endpoint    string // AWS_ENDPOINT_URL
	// Timeout is the function's own time limit.
	Timeout time.Duration // LANEWAY_TIMEOUT_SECONDS; 0: not known
	// Diagnostics say when a session that does not move is noticed.
	Diagnostics diag.Thresholds // LANEWAY_STUCK_WARN_MS, LANEWAY_STUCK_ABORT_MS; empty: 2 and 6 minutes
	// Reset says when sessions start over by themselves.
	Reset session.Resets // LANEWAY_SESSION_RESET; empty: never
	// Queue is what becomes of messages that come while a run is at work.
	Queue queueing.Settings // LANEWAY_QUEUE, as behind /queue; empty: queueing.Default
	// Inbound is how long texts wait for more of their sender.
	Inbound queueing.Inbound // LANEWAY_INBOUND_DEBOUNCE; empty: not at all
	// FallbackSkip is how long a session passes by a fallback that refused its credential.
	FallbackSkip time.Duration // OPENCLAW_FALLBACK_SKIP_TTL_MS; empty: not at all
	// Workspace is where an agent's tools work while the function lives.
	Workspace string // LANEWAY_WORKSPACE; empty: /tmp/workspace
	// Schedules are where those of jobs are kept; zero: this function keeps none.
	Schedules awsscheduler.Config // LANEWAY_SCHEDULE_GROUP, _ROLE_ARN, _DLQ_ARN, LANEWAY_SCHEDULER_ARN
}

// Read reads the environment and says everything that is missing at once.
func Read(get func(string) string) (Env, error) {
	e := Env{
		Stack: get("LANEWAY_STACK"), TablePrefix: get("LANEWAY_TABLE_PREFIX"), QueueMain: get("LANEWAY_QUEUE_MAIN_URL"),
		QueueCron: get("LANEWAY_QUEUE_CRON_URL"), QueueSub: get("LANEWAY_QUEUE_SUBAGENT_URL"), Timer: get("LANEWAY_TIMER_URL"),
		BlobBucket: get("LANEWAY_BLOB_BUCKET"), Model: get("LANEWAY_MODEL"), Fallbacks: get("LANEWAY_FALLBACKS"), SecretARN: get("LANEWAY_SECRET_ARN"),
		LogLevel: get("LANEWAY_LOG_LEVEL"), Endpoint: get("AWS_ENDPOINT_URL"),
		Workspace: cmp.Or(get("LANEWAY_WORKSPACE"), "/tmp/workspace"),
		Schedules: awsscheduler.Config{
			Group: get("LANEWAY_SCHEDULE_GROUP"), RoleARN: get("LANEWAY_SCHEDULE_ROLE_ARN"),
			DeadARN: get("LANEWAY_SCHEDULE_DLQ_ARN"), TargetARN: get("LANEWAY_SCHEDULER_ARN"),
		},
	}
	var err error
	if e.Reset, err = session.ParseReset(get("LANEWAY_SESSION_RESET")); err != nil {
		return e, fmt.Errorf("LANEWAY_SESSION_RESET: %w", err)
	}
	if e.Queue, err = queueing.Parse(get("LANEWAY_QUEUE")); err != nil {
		return e, fmt.Errorf("LANEWAY_QUEUE: %w", err)
	}
	if e.Inbound, err = queueing.ParseInbound(get("LANEWAY_INBOUND_DEBOUNCE")); err != nil {
		return e, fmt.Errorf("LANEWAY_INBOUND_DEBOUNCE: %w", err)
	}
	if e.FallbackSkip, err = profile.ParseSkipTTL(get(profile.SkipVariable)); err != nil {
		return e, fmt.Errorf("%s: %w", profile.SkipVariable, err)
	}
	if e.Diagnostics, err = diag.ParseThresholds(get("LANEWAY_STUCK_WARN_MS"), get("LANEWAY_STUCK_ABORT_MS")); err != nil {
		return e, fmt.Errorf("LANEWAY_STUCK_WARN_MS, LANEWAY_STUCK_ABORT_MS: %w", err)
	}
	if v := get("LANEWAY_TIMEOUT_SECONDS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			return e, errors.New("LANEWAY_TIMEOUT_SECONDS: not a number of seconds")
		}
		e.Timeout = time.Duration(n) * time.Second
	}
	var missing []string
	for _, v := range []struct{ name, value string }{
		{"LANEWAY_TABLE_PREFIX", e.TablePrefix},
		{"LANEWAY_QUEUE_MAIN_URL", e.QueueMain},
		{"LANEWAY_QUEUE_CRON_URL", e.QueueCron},
		{"LANEWAY_QUEUE_SUBAGENT_URL", e.QueueSub},
		{"LANEWAY_TIMER_URL", e.Timer},
		{"LANEWAY_BLOB_BUCKET", e.BlobBucket},
		{"LANEWAY_SCHEDULE_ROLE_ARN", cmp.Or(e.Schedules.RoleARN, unless(e.Schedules.Group))},
		{"LANEWAY_SCHEDULER_ARN", cmp.Or(e.Schedules.TargetARN, unless(e.Schedules.Group))},
	} {
		if v.value == "" {
			missing = append(missing, v.name)
		} else if strings.HasSuffix(v.name, "_URL") && !address(v.value) {
			return e, fmt.Errorf("%s: not an http or https URL", v.name)
		}
	}
	if len(missing) > 0 {
		return e, fmt.Errorf("not set: %s", strings.Join(missing, ", "))
	}
	if e.Endpoint != "" && !address(e.Endpoint) {
		return e, errors.New("AWS_ENDPOINT_URL: not an http or https URL")
	}
	if _, err := level(e.LogLevel); err != nil {
		return e, fmt.Errorf("LANEWAY_LOG_LEVEL: %w", err)
	}
	return e, nil
}

// unless is a value where another one is not given, which it is needed for.
func unless(other string) string {
	if other == "" {
		return "not needed"
	}
	return ""
}

func address(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func level(name string) (l slog.Level, err error) {
	err = l.UnmarshalText([]byte(cmp.Or(name, "info")))
	return l, err
}

// Secrets are the values of the stack's secret.
type Secrets struct {
	AnthropicKey string `json:"ANTHROPIC_API_KEY"`
	OpenAIKey    string `json:"OPENAI_API_KEY"`
	OpenAIURL    string `json:"OPENAI_BASE_URL"`
	Token        string `json:"gatewayToken"` // a token beside the stored ones
	// All are the members of the secret that are strings, for keys that a configuration
	// of models names.
	All map[string]string `json:"-"`
}

// Function is what a function has when it starts.
type Function struct {
	Env     Env
	AWS     aws.Config
	Log     *slog.Logger
	Metrics *diag.EMF
	Core    *wiring.Core
	Secrets Secrets

	// Make and Makers make model adapters; the function that calls models sets them.
	Make   func(context.Context, route.Spec) (model.Provider, error)
	Makers choose.Makers
}

// startWithin bounds the reads at the start of a process.
const startWithin = 8 * time.Second

// Start reads the environment and builds the core over AWS, with the limits of API
// Gateway.
func Start() (*Function, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	env, err := Read(os.Getenv)
	if err != nil {
		return nil, err
	}
	f := &Function{Env: env, Log: logger(env), Metrics: &diag.EMF{W: os.Stdout, Stack: env.Stack}}
	slog.SetDefault(f.Log)
	if f.AWS, err = config.LoadDefaultConfig(ctx); err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	if f.AWS.Region == "" {
		return nil, errors.New("not set: AWS_REGION")
	}
	if env.SecretARN != "" {
		if f.Secrets, err = readSecrets(ctx, f.AWS, env.SecretARN); err != nil {
			return nil, err
		}
	}
	f.Core, err = f.core()
	return f, err
}

func logger(e Env) *slog.Logger {
	l, err := level(e.LogLevel)
	if err != nil { // Read has refused it
		l = slog.LevelInfo
	}
	return slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: l}))
}

func readSecrets(ctx context.Context, c aws.Config, arn string) (Secrets, error) {
	var s Secrets
	out, err := secretsmanager.NewFromConfig(c).GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &arn})
	if err != nil {
		return s, fmt.Errorf("LANEWAY_SECRET_ARN: %w", err)
	}
	if out.SecretString == nil || *out.SecretString == "" {
		return s, nil
	}
	if json.Unmarshal([]byte(*out.SecretString), &s) != nil {
		// The error of the decoder could quote the secret.
		return s, errors.New("LANEWAY_SECRET_ARN: the secret is not a JSON object of strings")
	}
	var all map[string]any
	if json.Unmarshal([]byte(*out.SecretString), &all) == nil {
		s.All = map[string]string{}
		for name, v := range all {
			if text, ok := v.(string); ok {
				s.All[name] = text
			}
		}
	}
	return s, nil
}

func (f *Function) core() (*wiring.Core, error) {
	sender, err := sqs.New(awssqs.NewFromConfig(f.AWS), sqs.Config{
		TimerURL:  f.Env.Timer,
		QueueURLs: map[queue.Lane]string{queue.Main: f.Env.QueueMain, queue.Cron: f.Env.QueueCron, queue.Subagent: f.Env.QueueSub},
	})
	if err != nil {
		return nil, err
	}
	bucket := s3.NewClient(f.AWS)
	blobs, err := s3.New(bucket, s3.Config{Bucket: f.Env.BlobBucket})
	if err != nil {
		return nil, err
	}
	poster, err := apigw.New(apigw.Config{Credentials: f.AWS.Credentials, Region: f.AWS.Region, Endpoint: f.Env.Endpoint})
	if err != nil {
		return nil, err
	}
	var jobs wiring.CronSettings
	if f.Env.Schedules.Group != "" {
		if jobs.Scheduler, err = awsscheduler.New(scheduler.NewFromConfig(f.AWS), f.Env.Schedules); err != nil {
			return nil, err
		}
	}
	return wiring.Build(
		wiring.Ports{
			Store: dynamo.New(dynamodb.NewFromConfig(f.AWS), dynamo.Config{Prefix: f.Env.TablePrefix}),
			Queue: sender, Timers: sender, Blobs: blobs, Poster: poster,
			Uploads: s3sign.New(bucket, f.Env.BlobBucket, clock.System{}),
		},
		wiring.Settings{
			Log: f.Log, Metrics: f.Metrics, Version: Version, Pacing: 250 * time.Millisecond, MaxPayload: 32 << 10,
			Unreachable: 8 * time.Second,
			// A function that answers a frame has 29 s.
			BusyWait: 15 * time.Second, Diagnostics: f.Env.Diagnostics, Reset: f.Env.Reset, QueueRules: f.Env.Queue, Inbound: f.Env.Inbound,
			Cron: jobs,
		})
}
