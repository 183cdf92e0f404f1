package sqs_test

import (
	"crypto/md5" // SQS checks bodies by it
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
)

// server speaks as much of SQS's wire as is needed to give out scripted batches
// and to write down what it is asked; it keeps no queues.
type server struct {
	*httptest.Server
	t *testing.T

	mu      sync.Mutex
	batches [][]sent      // of the next receives
	errors  []failure     // of the next requests of any kind
	lines   []string      // "delete r1", "visibility r1 30", "send …", ...
	changed chan struct{} // closed and made anew with every line
}

type sent struct{ group, body string }

type failure struct {
	status int
	code   string
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, changed: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *server) client() *awssqs.Client {
	return awssqs.NewFromConfig(aws.Config{
		Region: "us-east-1", BaseEndpoint: &s.URL, HTTPClient: s.Client(), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
}

func (s *server) script(batches ...[]sent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, batches...)
}

func (s *server) fail(f ...failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors = append(s.errors, f...)
}

// until waits for all of the lines, and gives all that came.
func (s *server) until(want ...string) []string {
	s.t.Helper()
	limit := time.After(30 * time.Second)
	for {
		s.mu.Lock()
		lines, changed := slices.Clone(s.lines), s.changed
		s.mu.Unlock()
		missing := slices.DeleteFunc(slices.Clone(want), func(l string) bool { return slices.Contains(lines, l) })
		if len(missing) == 0 {
			return lines
		}
		select {
		case <-changed:
		case <-limit:
			s.t.Fatalf("never asked for %q, but for %q", missing, lines)
		}
	}
}

func (s *server) notef(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
	close(s.changed)
	s.changed = make(chan struct{})
}

type request struct {
	QueueURL               string `json:"QueueUrl"`
	QueueName              string
	MaxNumberOfMessages    int
	WaitTimeSeconds        int
	VisibilityTimeout      int
	ReceiptHandle          string
	MessageBody            string
	MessageGroupID         string `json:"MessageGroupId"`
	MessageDeduplicationID string `json:"MessageDeduplicationId"`
	DelaySeconds           int
	Attributes             map[string]string
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	var in request
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // whoever asked was stopped in the middle of it
	}
	if err := json.Unmarshal(body, &in); err != nil {
		s.t.Errorf("request: %v", err)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	op := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	s.mu.Lock()
	if len(s.errors) > 0 {
		f := s.errors[0]
		s.errors = s.errors[1:]
		s.mu.Unlock()
		w.WriteHeader(f.status)
		_ = json.NewEncoder(w).Encode(map[string]string{"__type": "com.amazonaws.sqs#" + f.code, "message": "x"})
		return
	}
	s.mu.Unlock()
	out := map[string]any{}
	switch op {
	case "ReceiveMessage":
		batch := s.next(in)
		if batch == nil {
			<-r.Context().Done() // a long poll
			return
		}
		out["Messages"] = batch
	case "DeleteMessage":
		s.notef("delete %s", in.ReceiptHandle)
	case "ChangeMessageVisibility":
		s.notef("visibility %s %d", in.ReceiptHandle, in.VisibilityTimeout)
	case "SendMessage":
		s.notef("send %s %s/%s %ds %s", in.QueueURL, in.MessageGroupID, in.MessageDeduplicationID, in.DelaySeconds, in.MessageBody)
		out["MessageId"], out["MD5OfMessageBody"] = "m", sum(in.MessageBody)
	case "CreateQueue":
		attributes, _ := json.Marshal(in.Attributes)
		s.notef("create %s %s", in.QueueName, attributes)
		out["QueueUrl"] = s.URL + "/" + in.QueueName
	case "GetQueueAttributes":
		out["Attributes"] = map[string]string{"QueueArn": "arn:" + in.QueueURL[strings.LastIndexByte(in.QueueURL, '/')+1:]}
	default:
		s.t.Errorf("unknown operation %q", op)
	}
	_ = json.NewEncoder(w).Encode(out)
}

// next is the next scripted batch for a receive, or nil.
func (s *server) next(in request) []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.batches) == 0 {
		return nil
	}
	b := s.batches[0]
	if in.MaxNumberOfMessages < 1 || in.WaitTimeSeconds != 20 || in.VisibilityTimeout < 1 {
		s.t.Errorf("asked with %+v", in)
	}
	if n := in.MaxNumberOfMessages; len(b) > n {
		b, s.batches[0] = b[:n], b[n:]
	} else {
		s.batches = s.batches[1:]
	}
	var out []map[string]any
	for _, m := range b {
		attributes := map[string]string{"ApproximateReceiveCount": "1"}
		if m.group != "" {
			attributes["MessageGroupId"] = m.group
		}
		out = append(out, map[string]any{
			"MessageId": "id-" + m.body, "ReceiptHandle": "r-" + m.body, "Body": m.body, "MD5OfBody": sum(m.body), "Attributes": attributes,
		})
	}
	return out
}

func sum(s string) string {
	h := md5.Sum([]byte(s))
	return hex.EncodeToString(h[:])
}
