// Command invoke sends an event to a function as Lambda does: the built bootstrap runs
// under the runtime interface emulator, over fresh tables, queues and a bucket at the
// endpoint that the environment names.
//
//	invoke -emulator RIE -bootstrap FILE EVENT.json
//
// It guarantees that the function's process has ended when it ends, and that its
// answer alone goes to standard output.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"laneway/shared/blob/s3"
	"laneway/shared/queue"
	"laneway/shared/queue/sqs"
	"laneway/shared/table/dynamo"
)

func main() {
	emulator := flag.String("emulator", "", "the runtime interface emulator")
	bootstrap := flag.String("bootstrap", "", "the function's program")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *emulator, *bootstrap, flag.Arg(0))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "invoke:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, emulator, bootstrap, eventFile string) error {
	event, err := os.ReadFile(eventFile)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	env, err := resources(ctx, fmt.Sprintf("invoke-%d", os.Getpid()))
	if err != nil {
		return err
	}
	answer, err := invoke(ctx, emulator, bootstrap, env, event)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, string(answer))
	return err
}

// resources makes what a function works on and gives its environment.
func resources(ctx context.Context, prefix string) ([]string, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	if err := dynamo.CreateTables(ctx, dynamodb.NewFromConfig(cfg), prefix+"-"); err != nil {
		return nil, err
	}
	queues, err := sqs.CreateQueues(ctx, awssqs.NewFromConfig(cfg), prefix, sqs.Settings{})
	if err != nil {
		return nil, err
	}
	if _, err := s3.NewClient(cfg).CreateBucket(ctx, &awss3.CreateBucketInput{Bucket: &prefix}); err != nil {
		return nil, err
	}
	return []string{
		"LANEWAY_STACK=" + prefix, "LANEWAY_TABLE_PREFIX=" + prefix + "-", "LANEWAY_TIMER_URL=" + queues.TimerURL,
		"LANEWAY_QUEUE_MAIN_URL=" + queues.QueueURLs[queue.Main], "LANEWAY_QUEUE_CRON_URL=" + queues.QueueURLs[queue.Cron],
		"LANEWAY_QUEUE_SUBAGENT_URL=" + queues.QueueURLs[queue.Subagent], "LANEWAY_BLOB_BUCKET=" + prefix, "LANEWAY_MODEL=demo",
	}, nil
}

// invoke runs the function for one event.
func invoke(ctx context.Context, emulator, bootstrap string, env []string, event []byte) (_ []byte, err error) {
	front, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	api, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, emulator, "--runtime-interface-emulator-address", front, "--runtime-api-address", api, bootstrap)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.WaitDelay = 5 * time.Second // the function is the emulator's child and holds its output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was ended
		if err != nil {
			err = fmt.Errorf("%w; the function said:\n%s", err, log.Bytes())
		}
	}()
	return post(ctx, "http://"+front+"/2015-03-31/functions/function/invocations", event)
}

// post sends the event as soon as the emulator listens.
func post(ctx context.Context, url string, event []byte) ([]byte, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		answer, err := once(ctx, url, event)
		if err == nil || !errors.Is(err, syscall.ECONNREFUSED) {
			return answer, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

func once(ctx context.Context, url string, event []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(event))
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
