// Command cloud measures what the deployed stack does for a turn: the built functions
// run under the Lambda runtime interface emulator over an AWS endpoint, and every
// request that they make to a service is written down on its way. It prints the table of
// the AWS budgets, and what turns, connections and an idle month cost.
//
// Guarantees: nothing is estimated that can be counted, and what is estimated says so;
// all processes have ended when it returns; nothing but the endpoint that
// AWS_ENDPOINT_URL names is called.
//
//	go run ./test/cloud -emulator RIE -dist dist/amd64
//
// `make bench-cloud` builds and starts what it needs.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"laneway/shared/blob/s3"
	"laneway/shared/cost"
	"laneway/shared/meter"
	"laneway/shared/queue"
	"laneway/shared/queue/sqs"
	"laneway/shared/table/dynamo"
	"laneway/shared/token"
	"laneway/test/load/document"
	"laneway/test/mockmodel"
)

// How often things are measured.
const (
	coldTries  = 9
	sessions   = 3 // plain turns are measured in each of them, but for its first
	plainTurns = 4
	toolTurns  = 2
)

func main() {
	var b bench
	flag.StringVar(&b.emulator, "emulator", "", "the runtime interface emulator")
	flag.StringVar(&b.dist, "dist", "", "folder of the built functions of this machine's architecture")
	budgets := flag.String("into", "", "a Markdown file whose block bench-cloud is replaced by the budgets")
	costs := flag.String("costs", "", "a Markdown file whose block bench-cloud is replaced by the costs")
	flag.BoolVar(&b.listed, "calls", false, "list the requests of a turn on standard error")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	f, err := b.run(ctx)
	stop()
	if err == nil {
		_, err = fmt.Fprintln(os.Stdout, f.budgets()+"\n"+f.costs())
		if *budgets != "" {
			err = errors.Join(err, document.Replace(*budgets, "bench-cloud", f.budgets()))
		}
		if *costs != "" {
			err = errors.Join(err, document.Replace(*costs, "bench-cloud", f.costs()))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cloud:", err)
		os.Exit(1)
	}
}

// bench is one measurement.
type bench struct {
	emulator, dist string
	listed         bool
	env            []string
	wire           *wire
	sqs            *awssqs.Client
	model          *mockmodel.Server
	lane, timers   string // addresses of queues
	secret, token  string

	gateway, runner, notifier  *lambda
	turns, frames, connections int
}

// run measures everything.
func (b *bench) run(ctx context.Context) (_ *figures, err error) {
	endpoint := os.Getenv("AWS_ENDPOINT_URL")
	if endpoint == "" {
		return nil, errors.New("AWS_ENDPOINT_URL is not set")
	}
	if b.model, err = mockmodel.Start("127.0.0.1:0"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.model.Close()) }()
	prefix := fmt.Sprintf("cloud-%d", os.Getpid())
	if b.wire, err = newWire(endpoint, prefix+"-"); err != nil {
		return nil, err
	}
	between := httptest.NewServer(b.wire)
	defer between.Close()
	work, err := os.MkdirTemp("", "laneway-cloud-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := b.resources(ctx, prefix, between.URL, work); err != nil {
		return nil, err
	}
	f := &figures{}
	if err := b.starts(ctx, f); err != nil {
		return nil, err
	}
	defer b.stop()
	if err := b.startAll(ctx); err != nil {
		return nil, err
	}
	return f, errors.Join(b.connectionsOf(ctx, f), b.turnsOf(ctx, f), b.idle(ctx, f))
}

// startAll starts the functions of a message's way.
func (b *bench) startAll(ctx context.Context) (err error) {
	for name, to := range map[string]**lambda{"gateway": &b.gateway, "runner": &b.runner, "notifier": &b.notifier} {
		if *to, err = b.start(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) stop() {
	for _, f := range []*lambda{b.gateway, b.runner, b.notifier} {
		if f != nil {
			f.stop()
		}
	}
}

// restart gives the gateway a new process.
func (b *bench) restart(ctx context.Context) (err error) {
	b.gateway.stop()
	b.gateway, err = b.start(ctx, "gateway")
	return err
}

// resources makes what the functions work on, and their environment.
func (b *bench) resources(ctx context.Context, prefix, between, work string) error {
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	db := dynamodb.NewFromConfig(c)
	if err := dynamo.CreateTables(ctx, db, prefix+"-"); err != nil {
		return err
	}
	b.sqs = awssqs.NewFromConfig(c)
	queues, err := sqs.CreateQueues(ctx, b.sqs, prefix, sqs.Settings{})
	if err != nil {
		return err
	}
	b.lane, b.timers = queues.QueueURLs[queue.Main], queues.TimerURL
	if _, err := s3.NewClient(c).CreateBucket(ctx, &awss3.CreateBucketInput{Bucket: &prefix}); err != nil {
		return err
	}
	keys, err := json.Marshal(map[string]string{"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": b.model.URL})
	if err != nil {
		return err
	}
	secret, err := secretsmanager.NewFromConfig(c).CreateSecret(ctx, &secretsmanager.CreateSecretInput{
		Name: &prefix, SecretString: aws.String(string(keys)),
	})
	if err != nil {
		return err
	}
	tokens := token.Store{Table: dynamo.New(db, dynamo.Config{Prefix: prefix + "-"})}
	if b.token, err = tokens.Add(ctx, token.Grant{Name: "bench"}); err != nil {
		return err
	}
	b.secret = aws.ToString(secret.ARN)
	b.env = []string{
		"AWS_ENDPOINT_URL=" + between, "AWS_ENDPOINT_URL_S3=" + between, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512",
		"LANEWAY_STACK=" + prefix, "LANEWAY_TABLE_PREFIX=" + prefix + "-", "LANEWAY_TIMER_URL=" + queues.TimerURL,
		"LANEWAY_QUEUE_MAIN_URL=" + b.lane, "LANEWAY_QUEUE_CRON_URL=" + queues.QueueURLs[queue.Cron],
		"LANEWAY_QUEUE_SUBAGENT_URL=" + queues.QueueURLs[queue.Subagent], "LANEWAY_BLOB_BUCKET=" + prefix,
		"LANEWAY_MODEL=openai/" + mockmodel.Model,
		"LANEWAY_TIMEOUT_SECONDS=900", "LANEWAY_WORKSPACE=" + work, "LANEWAY_LOG_LEVEL=warn",
	}
	return nil
}

// starts measures cold starts and sizes.
func (b *bench) starts(ctx context.Context, f *figures) error {
	f.cold = map[string][]time.Duration{}
	f.zip = map[string]int64{}
	for _, name := range functions {
		all, err := b.coldStarts(ctx, name)
		if err != nil {
			return err
		}
		f.cold[name] = all
		info, err := os.Stat(filepath.Clean(b.dist) + "/../" + filepath.Base(b.dist) + "/" + name + ".zip")
		if err != nil {
			return err
		}
		f.zip[name] = info.Size()
	}
	return nil
}

// connectionsOf measures what a connection costs that does nothing.
func (b *bench) connectionsOf(ctx context.Context, f *figures) error {
	for range 2 { // the first one is of new processes
		b.connections++
		calls, invocations, err := b.connect(ctx)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		f.connect = counts(calls, invocations...)
		b.wire.take()
		alive, err := b.gateway.invoke(ctx, b.frame("health", nil))
		if err != nil {
			return fmt.Errorf("health: %w", err)
		}
		f.alive = cost.Sum(counts(b.wire.take(), alive), map[meter.Name]float64{meter.PostUnits: 2})
		more, i, err := b.close(ctx)
		if err != nil {
			return fmt.Errorf("disconnect: %w", err)
		}
		f.disconnect = counts(more, i)
	}
	return nil
}

// turnsOf measures turns, each kind apart.
func (b *bench) turnsOf(ctx context.Context, f *figures) error {
	b.connections++
	if _, _, err := b.connect(ctx); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	for s := range sessions {
		for n := range plainTurns {
			t, err := b.turn(ctx, fmt.Sprintf("plain-%d", s), false)
			if err != nil {
				return fmt.Errorf("plain turn: %w", err)
			}
			if n > 0 {
				f.plain = append(f.plain, t)
			}
		}
	}
	// Two that find a process which has not seen the connection: it has seen the session
	// neither, or there is none yet.
	if err := b.restart(ctx); err != nil {
		return err
	}
	t, err := b.turn(ctx, "plain-0", false)
	if err != nil {
		return fmt.Errorf("turn at a new gateway: %w", err)
	}
	f.stranger = t
	if err := b.restart(ctx); err != nil {
		return err
	}
	if f.newcomer, err = b.turn(ctx, "new", false); err != nil {
		return fmt.Errorf("first turn of a session at a new gateway: %w", err)
	}
	if b.listed {
		list("accept, gateway knows the connection", f.plain[0].accept.begin, f.plain[0].acceptCalls)
		list("accept, new gateway", t.accept.begin, t.acceptCalls)
		list("run", t.run.begin, t.runCalls)
	}
	for n := range toolTurns + 1 {
		t, err := b.turn(ctx, "tools", true)
		if err != nil {
			return fmt.Errorf("turn with tools: %w", err)
		}
		if n > 0 {
			f.tools = append(f.tools, t)
		}
	}
	return nil
}

// idle measures a look of the watchdog while nothing is to be done.
func (b *bench) idle(ctx context.Context, f *figures) error {
	w, err := b.start(ctx, "watchdog")
	if err != nil {
		return err
	}
	defer w.stop()
	event, err := os.ReadFile("events/watchdog.json")
	if err != nil {
		return err
	}
	for range 3 { // the last one counts: a minute in a process that has seen others
		b.wire.take()
		i, err := w.invoke(ctx, event)
		if err != nil {
			return err
		}
		f.watchdog, f.watchdogTook = counts(b.wire.take(), i), i.took()
		f.watchdogLog, f.watchdogMetrics = w.log.Len(), bytes.Count(w.log.Bytes(), []byte(`"_aws"`))
		w.log.Reset()
	}
	return nil
}
