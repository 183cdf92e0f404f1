package sqs_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"testing"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"go.uber.org/goleak"

	"laneway/shared/queue/lineartest"
	"laneway/shared/queue/queuetest"
	"laneway/shared/queue/sqs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// endpoint is a client of the configured endpoint, or skips the test.
func endpoint(t *testing.T) (*awssqs.Client, string) {
	t.Helper()
	url := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_SQS"), os.Getenv("AWS_ENDPOINT_URL"))
	if url == "" {
		t.Skip("SQS suite: neither AWS_ENDPOINT_URL_SQS nor AWS_ENDPOINT_URL is set")
	}
	// No idle connection, and none of its goroutines, outlives a request.
	client := awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) { tr.DisableKeepAlives = true })
	c, err := config.LoadDefaultConfig(t.Context(), config.WithHTTPClient(client))
	if err != nil {
		t.Fatal(err)
	}
	return awssqs.NewFromConfig(c), url
}

// differences asks what the endpoint is.
func differences(t *testing.T, url string) []queuetest.Difference {
	t.Helper()
	if found(t, url+"/_ministack/health") {
		return nil
	}
	if found(t, url+"/_localstack/health") {
		return []queuetest.Difference{queuetest.DisorderInFlight}
	}
	return nil
}

func found(t *testing.T, url string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func create(t *testing.T, client *awssqs.Client, visibility time.Duration) sqs.Queues {
	t.Helper()
	q, err := sqs.CreateQueues(t.Context(), client, fmt.Sprintf("suite-%016x", rand.Uint64()), sqs.Settings{
		Lanes: queuetest.Lanes(), Visibility: visibility, TimerMaxReceives: queuetest.MaxReceives,
	})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestSuite(t *testing.T) {
	t.Parallel()
	client, url := endpoint(t)
	known := differences(t, url)
	queuetest.Run(t, func(t *testing.T) queuetest.Fixture {
		t.Helper()
		return fixture(t, client, 1, known)
	})
}

// The mapping and the poller receive one message at a time, but may be set to
// receive more.
func TestF30a_OnTheEndpoint(t *testing.T) {
	t.Parallel()
	client, url := endpoint(t)
	known := differences(t, url)
	queuetest.Batches(t, func(t *testing.T) queuetest.Fixture {
		t.Helper()
		return fixture(t, client, 10, known)
	})
}

func fixture(t *testing.T, client *awssqs.Client, batch int, known []queuetest.Difference) queuetest.Fixture {
	t.Helper()
	const visibility = 2 * time.Second
	q := create(t, client, visibility)
	sender, err := sqs.New(client, q.Config)
	if err != nil {
		t.Fatal(err)
	}
	poller, err := sqs.NewPoller(client, sqs.PollerConfig{Config: q.Config, Lanes: queuetest.Lanes(), Visibility: visibility, Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	dead, err := sqs.NewDeadLetters(client, q)
	if err != nil {
		t.Fatal(err)
	}
	return queuetest.Fixture{
		Sender: sender, Timers: sender, Receive: poller.Run, Dead: dead, Visibility: visibility, Differences: known,
	}
}

func TestLinearizable(t *testing.T) {
	t.Parallel()
	client, url := endpoint(t)
	known := differences(t, url)
	lineartest.Check(t, func(t *testing.T) lineartest.Queue {
		t.Helper()
		f := fixture(t, client, 1, known)
		return lineartest.Queue{Sender: f.Sender, Receive: f.Receive}
	})
}
