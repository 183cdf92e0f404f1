package s3_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"laneway/shared/blob"
	"laneway/shared/blob/blobtest"
	"laneway/shared/blob/s3"
)

// bucket makes one on the endpoint, or skips the test where there is none.
func bucket(t *testing.T, client *awss3.Client) string {
	t.Helper()
	name := fmt.Sprintf("laneway-%016x", rand.Uint64())
	if _, err := client.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatalf("CreateBucket: %v", err)
	}
	return name
}

func endpointClient(t *testing.T, options ...func(*awss3.Options)) *awss3.Client {
	t.Helper()
	if cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL")) == "" {
		t.Skip("S3 suite: neither AWS_ENDPOINT_URL_S3 nor AWS_ENDPOINT_URL is set")
	}
	c, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s3.NewClient(c, options...)
}

func TestSuite(t *testing.T) {
	t.Parallel()
	client := endpointClient(t)
	name := bucket(t, client)
	blobtest.Run(t, func(t *testing.T, most int) blob.Store {
		t.Helper()
		s, err := s3.New(client, s3.Config{Bucket: name, MaxSize: most})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}, differences(t)...)
}

// differences asks what the endpoint is.
func differences(t *testing.T) []blobtest.Difference {
	t.Helper()
	url := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	if found(t, url+"/_localstack/health") && !found(t, url+"/_ministack/health") {
		return []blobtest.Difference{blobtest.HangingGet}
	}
	return nil
}

func found(t *testing.T, url string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// The endpoint takes the first put, and its answer is lost on the way.
func TestPutNewWhoseAnswerIsLostIsNotTakenBySomebodyElse(t *testing.T) {
	t.Parallel()
	var once sync.Once
	client := endpointClient(t, func(o *awss3.Options) {
		inner := o.HTTPClient
		o.HTTPClient = doer(func(r *http.Request) (*http.Response, error) {
			resp, err := inner.Do(r)
			lost := false
			if r.Header.Get("If-None-Match") != "" {
				once.Do(func() { lost = true })
			}
			if lost && err == nil {
				_ = resp.Body.Close()
				return nil, &lostAnswerError{}
			}
			return resp, err
		})
	})
	s, err := s3.New(client, s3.Config{Bucket: bucket(t, client)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.PutNew(t.Context(), "k", []byte("mine")); err != nil {
		t.Errorf("PutNew: %v", err)
	}
	if err := s.PutNew(t.Context(), "k", []byte("mine")); !errors.Is(err, blob.ErrExists) {
		t.Errorf("second PutNew: %v", err)
	}
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

// lostAnswerError looks to the SDK like a connection that broke.
type lostAnswerError struct{}

func (*lostAnswerError) Error() string   { return "connection reset" }
func (*lostAnswerError) Timeout() bool   { return true }
func (*lostAnswerError) Temporary() bool { return true }

// server answers every request with a status and an S3 error code, or with a
// body where there is no code.
func server(t *testing.T, status int, code, body string) *s3.Store {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/bucket") {
			t.Errorf("bucket is not in the path %s", r.URL.Path)
		}
		w.WriteHeader(status)
		if code != "" {
			body = "<Error><Code>" + code + "</Code></Error>"
		}
		if r.Method != http.MethodHead {
			_, _ = w.Write([]byte(body))
		}
	}))
	t.Cleanup(srv.Close)
	client := s3.NewClient(aws.Config{
		Region: "us-east-1", BaseEndpoint: &srv.URL,
		Credentials:      credentials.NewStaticCredentialsProvider("test", "test", ""),
		RetryMaxAttempts: 1,
	})
	s, err := s3.New(client, s3.Config{Bucket: "bucket", MaxSize: 100})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAnswersBecomeErrorsOfThePort(t *testing.T) {
	t.Parallel()
	all := map[string]error{"not found": blob.ErrNotFound, "invalid": blob.ErrInvalid, "too large": blob.ErrTooLarge, "exists": blob.ErrExists}
	for _, c := range []struct {
		status int
		code   string
		want   string // empty: an error that is none of the port's
	}{
		{404, "NoSuchKey", "not found"},
		{404, "", "not found"},
		{404, "NoSuchBucket", ""},
		{412, "PreconditionFailed", "exists"},
		{412, "", "exists"},
		{409, "ConditionalRequestConflict", ""},
		{400, "EntityTooLarge", "too large"},
		{413, "", "too large"},
		{400, "KeyTooLongError", "invalid"},
		{403, "AccessDenied", ""},
		{500, "InternalError", ""},
		{503, "SlowDown", ""},
	} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			t.Parallel()
			s := server(t, c.status, c.code, "")
			_, get := s.Get(t.Context(), "k")
			for what, err := range map[string]error{
				"Put": s.Put(t.Context(), "k", []byte("x")), "PutNew": s.PutNew(t.Context(), "k", []byte("x")), "Get": get,
			} {
				if err == nil {
					t.Errorf("%s: no error", what)
				}
				for name, e := range all {
					if errors.Is(err, e) != (name == c.want) {
						t.Errorf("%s: %v, want %q", what, err, c.want)
					}
				}
			}
		})
	}
}

func TestALargerValueThanAllowedIsNotRead(t *testing.T) {
	t.Parallel()
	s := server(t, http.StatusOK, "", strings.Repeat("x", 101))
	if v, err := s.Get(t.Context(), "k"); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("%d bytes, %v", len(v), err)
	}
	s = server(t, http.StatusOK, "", strings.Repeat("x", 100))
	if v, err := s.Get(t.Context(), "k"); err != nil || !bytes.Equal(v, bytes.Repeat([]byte("x"), 100)) {
		t.Errorf("%d bytes, %v", len(v), err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	if _, err := s3.New(nil, s3.Config{Bucket: "b"}); err == nil {
		t.Error("no client: accepted")
	}
	if _, err := s3.New(&awss3.Client{}, s3.Config{}); err == nil {
		t.Error("no bucket: accepted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server(t, http.StatusOK, "", "").Put(ctx, "k", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
}
