package dynamo_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"laneway/shared/table/dynamo"
)

// wire is a server that speaks DynamoDB's protocol from a script: one reply for each
// request, in order. It keeps the requests.
type wire struct {
	t   *testing.T
	url string

	mu      sync.Mutex
	replies []reply
	got     []request
}

type request struct {
	Op   string // PutItem, TransactWriteItems, ...
	Body map[string]any
	Raw  string
}

// reply is an answer; status 0 cuts the connection, -1 lets the client wait.
type reply struct {
	status int
	body   string
}

var (
	cut   = reply{}
	stall = reply{status: -1}
	done  = reply{200, `{}`}
)

func refusal(kind, members string) reply {
	if members != "" {
		members = "," + members
	}
	return reply{400, `{"__type":"com.amazonaws.dynamodb.v20120810#` + kind + `"` + members + `}`}
}

func setup(t *testing.T, c dynamo.Config, replies ...reply) (*dynamo.Store, *wire) {
	t.Helper()
	w := &wire{t: t, replies: replies}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	w.url = server.URL
	if c.Clock == nil {
		c.Clock = instant{}
	}
	return dynamo.New(clientOf(server.URL), c), w
}

func clientOf(url string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(url), Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
		HTTPClient:  &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		Retryer:     aws.NopRetryer{},
	})
}

func (w *wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Error(err)
	}
	req := request{Op: strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB_20120810."), Raw: string(raw)}
	if err := json.Unmarshal(raw, &req.Body); err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	w.got = append(w.got, req)
	var a reply
	if n := len(w.got); n <= len(w.replies) {
		a = w.replies[n-1]
	} else {
		w.t.Errorf("request %d (%s) is one too many", n, req.Op)
		a = done
	}
	w.mu.Unlock()
	switch a.status {
	case -1:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case 0:
		panic(http.ErrAbortHandler) // net/http's own way to cut a connection
	}
	rw.Header().Set("Content-Type", "application/x-amz-json-1.0")
	rw.WriteHeader(a.status)
	_, _ = io.WriteString(rw, a.body)
}

// requests checks how many there were and returns them.
func (w *wire) requests(want int) []request {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.got) != want {
		w.t.Fatalf("%d requests, want %d: %v", len(w.got), want, w.got)
	}
	return w.got
}

// at is a member of a nested JSON object.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

// instant is a clock on which waiting takes no time.
type instant struct{}

func (instant) Now() time.Time { return time.Time{} }

func (instant) After(time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	c <- time.Time{}
	return c
}
