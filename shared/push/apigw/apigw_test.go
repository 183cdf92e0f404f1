package apigw_test

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"go.uber.org/goleak"

	"laneway/shared/push"
	"laneway/shared/push/apigw"
	"laneway/shared/push/pushtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func poster(t *testing.T, s *pushtest.Server, change func(*apigw.Config)) *apigw.Poster {
	t.Helper()
	client := s.Client()
	t.Cleanup(client.CloseIdleConnections)
	c := apigw.Config{
		Credentials: credentials.NewStaticCredentialsProvider(pushtest.KeyID, pushtest.SecretKey, ""),
		Region:      pushtest.Region, Timeout: time.Minute, HTTP: client,
	}
	if change != nil {
		change(&c)
	}
	p, err := apigw.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// AWS's form, a callback of AWS with an endpoint set, and the endpoint's form.
func TestSuite(t *testing.T) {
	t.Parallel()
	for name, form := range map[string]func(s *pushtest.Server) (callback, endpoint string){
		"AWS": func(s *pushtest.Server) (string, string) { return s.URL + "/prod", "" },
		"endpoint": func(s *pushtest.Server) (string, string) {
			return apigw.CallbackFor("ignored.example", "prod", "api1", s.URL), s.URL
		},
		"endpoint and a callback of AWS": func(s *pushtest.Server) (string, string) {
			return apigw.CallbackFor("api1.execute-api.eu-north-1.amazonaws.com", "prod", "api1", ""), s.URL + "/"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pushtest.Run(t, func(t *testing.T, timeout time.Duration) pushtest.Fixture {
				t.Helper()
				s := pushtest.NewServer(t)
				t.Cleanup(func() {
					if n := s.Refused(); n != 0 {
						t.Errorf("%d requests had no valid signature or path", n)
					}
				})
				callback, endpoint := form(s)
				return pushtest.Fixture{
					Poster: poster(t, s, func(c *apigw.Config) { c.Endpoint, c.Timeout = endpoint, timeout }),
					Connect: func(id string) (push.Target, pushtest.Client) {
						return push.Target{ConnectionID: id, Callback: callback}, s.Connect(id)
					},
					Absent: push.Target{ConnectionID: "absent=", Callback: callback},
				}
			})
		})
	}
}

// A 410 comes with the typed body, with another, and with none.
func TestF30d_TheStatusAloneSaysGone(t *testing.T) {
	t.Parallel()
	s := pushtest.NewServer(t)
	p := poster(t, s, nil)
	for _, c := range []struct {
		status int
		want   error
	}{
		{http.StatusGone, push.ErrGone},
		{http.StatusTooManyRequests, push.ErrThrottled},
		{http.StatusRequestEntityTooLarge, push.ErrTooLarge},
		{http.StatusForbidden, push.ErrFailed},
		{http.StatusNotFound, push.ErrFailed},
		{http.StatusMovedPermanently, push.ErrFailed},
		{http.StatusInternalServerError, push.ErrFailed},
		{http.StatusBadGateway, push.ErrFailed},
		{http.StatusServiceUnavailable, push.ErrFailed},
		{http.StatusOK, nil},
		{http.StatusNoContent, nil},
	} {
		for i, body := range []string{"", `{"message":"x","__type":"GoneException"}`, "<html>", "null"} {
			if c.status == http.StatusNoContent && body != "" {
				continue
			}
			id := fmt.Sprint(c.status, "-", i)
			s.Connect(id).Script(pushtest.Answer{Status: c.status, Body: body})
			err := p.Post(t.Context(), push.Target{ConnectionID: id, Callback: s.URL + "/prod"}, []byte("x"))
			if !errors.Is(err, c.want) {
				t.Errorf("status %d with body %q: %v, want %v", c.status, body, err, c.want)
			}
			for _, other := range []error{push.ErrGone, push.ErrThrottled, push.ErrTooLarge, push.ErrFailed} {
				if !errors.Is(c.want, other) && errors.Is(err, other) {
					t.Errorf("status %d with body %q is also %v", c.status, body, other)
				}
			}
		}
	}
}

func TestAPostIsOneRequest(t *testing.T) {
	t.Parallel()
	s := pushtest.NewServer(t)
	p := poster(t, s, nil)
	peer := s.Connect("a=")
	to := push.Target{ConnectionID: "a=", Callback: s.URL + "/prod"}
	peer.Script(pushtest.Answer{Status: 500, Delivered: true})
	if err := p.Post(t.Context(), to, []byte("1")); !errors.Is(err, push.ErrFailed) {
		t.Errorf("%v", err)
	}
	if err := p.Post(t.Context(), to, []byte("2")); err != nil {
		t.Errorf("%v", err)
	}
	if got := peer.Received(); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("received %q: something was sent twice", got)
	}
}

func TestGetTellsWhetherAConnectionLives(t *testing.T) {
	t.Parallel()
	s := pushtest.NewServer(t)
	p := poster(t, s, nil)
	peer := s.Connect("a=")
	to := push.Target{ConnectionID: "a=", Callback: s.URL + "/prod"}
	if info, err := p.Get(t.Context(), to); err != nil || time.Since(info.ConnectedAt) > time.Minute {
		t.Errorf("live: %+v, %v", info, err)
	}
	peer.Script(pushtest.Answer{Status: 200, Body: `{"ConnectedAt":1700000000,"LastActiveAt":1700000001.5}`})
	if info, err := p.Get(t.Context(), to); err != nil || info.LastActiveAt.UnixMilli() != 1700000001500 {
		t.Errorf("times in seconds: %+v, %v", info, err)
	}
	peer.Leave()
	if _, err := p.Get(t.Context(), to); !errors.Is(err, push.ErrGone) {
		t.Errorf("gone: %v", err)
	}
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	s := pushtest.NewServer(t)
	s.Connect("a=")
	to := push.Target{ConnectionID: "a=", Callback: s.URL + "/prod"}
	for name, change := range map[string]func(*apigw.Config){
		"another secret": func(c *apigw.Config) {
			c.Credentials = credentials.NewStaticCredentialsProvider(pushtest.KeyID, "x", "")
		},
		"another region": func(c *apigw.Config) { c.Region = "us-east-1" },
	} {
		if err := poster(t, s, change).Post(t.Context(), to, []byte("x")); !errors.Is(err, push.ErrFailed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	session := func(c *apigw.Config) {
		c.Credentials = credentials.NewStaticCredentialsProvider(pushtest.KeyID, pushtest.SecretKey, "session-token")
	}
	if err := poster(t, s, session).Post(t.Context(), to, []byte("x")); err != nil {
		t.Errorf("with a session token: %v", err)
	}
	if n := s.Refused(); n != 2 {
		t.Errorf("%d refused, want 2", n)
	}
}

func TestOddTargetsAreNotCalled(t *testing.T) {
	t.Parallel()
	s := pushtest.NewServer(t)
	onAWS, onEndpoint := poster(t, s, nil), poster(t, s, func(c *apigw.Config) { c.Endpoint = s.URL })
	for _, c := range []struct {
		p    *apigw.Poster
		to   push.Target
		want error
	}{
		{onAWS, push.Target{ConnectionID: "a="}, push.ErrFailed},
		{onAWS, push.Target{ConnectionID: "a=", Callback: "http://127.0.0.1:1/prod"}, push.ErrFailed},
		{onAWS, push.Target{ConnectionID: "a=", Callback: "://"}, push.ErrFailed},
		{onAWS, push.Target{ConnectionID: "", Callback: s.URL + "/prod"}, push.ErrGone},
		{onEndpoint, push.Target{ConnectionID: "a=", Callback: "https://example.com/prod"}, push.ErrFailed},
		{onEndpoint, push.Target{ConnectionID: "a=", Callback: "https://api.execute-api.x.amazonaws.com/"}, push.ErrFailed},
		{onEndpoint, push.Target{ConnectionID: "a=", Callback: s.URL + "/_aws/execute-api/api"}, push.ErrFailed},
	} {
		if err := c.p.Post(t.Context(), c.to, []byte("x")); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.to, err, c.want)
		}
	}
}

func TestCallbackFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ domain, stage, api, endpoint, want string }{
		{"a1.execute-api.eu-north-1.amazonaws.com", "prod", "a1", "", "https://a1.execute-api.eu-north-1.amazonaws.com/prod"},
		{"a1.execute-api.localhost", "prod", "a1", "http://127.0.0.1:4566", "http://127.0.0.1:4566/_aws/execute-api/a1/prod"},
		{"", "$default", "a1", "http://[::1]:4566/", "http://[::1]:4566/_aws/execute-api/a1/$default"},
	} {
		if got := apigw.CallbackFor(c.domain, c.stage, c.api, c.endpoint); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	good := apigw.Config{Credentials: aws.AnonymousCredentials{}, Region: "x"}
	for name, change := range map[string]func(*apigw.Config){
		"no credentials":    func(c *apigw.Config) { c.Credentials = nil },
		"no region":         func(c *apigw.Config) { c.Region = "" },
		"negative time":     func(c *apigw.Config) { c.Timeout = -1 },
		"endpoint no URL":   func(c *apigw.Config) { c.Endpoint = "127.0.0.1" },
		"endpoint only one": func(c *apigw.Config) { c.Endpoint = "/path" },
	} {
		c := good
		change(&c)
		if _, err := apigw.New(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := apigw.New(good); err != nil {
		t.Errorf("the least that is needed: %v", err)
	}
}

// An endpoint is asked for connections that never were; posts to live ones need
// a deployed API and are tried with it, end to end.
func TestEndpointSaysGone(t *testing.T) {
	t.Parallel()
	endpoint := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI"), os.Getenv("AWS_ENDPOINT_URL"))
	if endpoint == "" {
		t.Skip("@connections on an endpoint: AWS_ENDPOINT_URL is not set")
	}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	p, err := apigw.New(apigw.Config{
		Credentials: credentials.NewStaticCredentialsProvider(cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), "test"), cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), "test"), ""),
		Region:      cmp.Or(os.Getenv("AWS_REGION"), "us-east-1"), Endpoint: endpoint, HTTP: client,
	})
	if err != nil {
		t.Fatal(err)
	}
	to := push.Target{ConnectionID: "never+was/here=", Callback: apigw.CallbackFor("", "prod", "api1", endpoint)}
	if err := p.Post(t.Context(), to, []byte("x")); !errors.Is(err, push.ErrGone) {
		t.Errorf("post: %v", err)
	}
	if err := p.Close(t.Context(), to); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, err := p.Get(t.Context(), to); !errors.Is(err, push.ErrGone) {
		t.Errorf("get: %v", err)
	}
	t.Log("not tried here: posts to live connections, 413 and 429")
}
