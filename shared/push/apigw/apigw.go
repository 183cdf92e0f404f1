// Package apigw is the push port over API Gateway's @connections.
//
// Guarantees: one call of Post is at most one HTTP request, signed with SigV4,
// and ends within the time limit; what became of it is judged by the status
// alone, with or without a body, since a 410 comes in several shapes; nothing
// but the callback's host, or the configured endpoint, is ever called.
package apigw

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"laneway/shared/clock"
	"laneway/shared/meter"
	"laneway/shared/push"
)

// idleConns is how many connections to one API are kept: a runner posts to many
// clients at once, and the default of 2 would mean a TLS handshake for most.
const idleConns = 64

// Config is what New takes.
type Config struct {
	Credentials aws.CredentialsProvider
	Region      string
	Endpoint    string        // AWS_ENDPOINT_URL where it is set; empty: AWS
	Timeout     time.Duration // of a post; zero: push.PostTimeout
	Clock       clock.Clock   // of signatures; zero: clock.System
	HTTP        *http.Client  // zero: one of its own, without redirects
}

// Poster implements push.Poster.
type Poster struct {
	connections connections
	endpoint    *url.URL // nil: AWS
	timeout     time.Duration
}

var _ push.Poster = (*Poster)(nil)

// New makes a poster.
func New(c Config) (*Poster, error) {
	if c.Credentials == nil || c.Region == "" || c.Timeout < 0 {
		return nil, errors.New("push/apigw: no credentials, no region, or a negative time limit")
	}
	p := &Poster{
		connections: connections{http: c.HTTP, signer: v4.NewSigner(), creds: c.Credentials, region: c.Region, clock: c.Clock},
		timeout:     cmp.Or(c.Timeout, push.PostTimeout),
	}
	if c.Endpoint != "" {
		u, err := url.Parse(c.Endpoint)
		if err != nil || u.Host == "" {
			return nil, errors.New("push/apigw: the endpoint is no URL")
		}
		p.endpoint = u
	}
	if c.Clock == nil {
		p.connections.clock = clock.System{}
	}
	if c.HTTP == nil {
		transport := &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			ForceAttemptHTTP2:   true,
			MaxIdleConns:        idleConns,
			MaxIdleConnsPerHost: idleConns,
			IdleConnTimeout:     time.Minute,
		}
		p.connections.http = &http.Client{
			Transport: transport,
			// A redirect would carry a signature that is for another place.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return p, nil
}

// Post implements push.Poster.
func (p *Poster) Post(ctx context.Context, to push.Target, message []byte) error {
	if len(message) > push.MaxFrame {
		return fmt.Errorf("%w: %d bytes", push.ErrTooLarge, len(message))
	}
	return p.do(ctx, to, func(ctx context.Context, base *url.URL) error {
		m := meter.From(ctx)
		m.Add(meter.PostCalls, 1)
		m.Add(meter.PostUnits, push.Units(len(message)))
		return p.connections.postToConnection(ctx, base, to.ConnectionID, message)
	})
}

// Close implements push.Poster.
func (p *Poster) Close(ctx context.Context, to push.Target) error {
	err := p.do(ctx, to, func(ctx context.Context, base *url.URL) error {
		return p.connections.deleteConnection(ctx, base, to.ConnectionID)
	})
	if errors.Is(err, push.ErrGone) {
		return nil
	}
	return err
}

// Info is what API Gateway knows of a live connection.
type Info struct{ ConnectedAt, LastActiveAt time.Time }

// Get asks for a connection; push.ErrGone where there is none.
func (p *Poster) Get(ctx context.Context, to push.Target) (Info, error) {
	var info Info
	err := p.do(ctx, to, func(ctx context.Context, base *url.URL) error {
		answer, err := p.connections.getConnection(ctx, base, to.ConnectionID)
		if err != nil {
			return err
		}
		var times struct {
			ConnectedAt  instant `json:"connectedAt"`
			LastActiveAt instant `json:"lastActiveAt"`
		}
		if err := json.Unmarshal(answer, &times); err != nil {
			return err
		}
		info = Info{times.ConnectedAt.Time, times.LastActiveAt.Time}
		return nil
	})
	return info, err
}

func (p *Poster) do(ctx context.Context, to push.Target, call func(context.Context, *url.URL) error) error {
	u, err := base(to.Callback, p.endpoint)
	if err != nil {
		return fmt.Errorf("%w: %w", push.ErrFailed, err)
	}
	if to.ConnectionID == "" {
		return push.ErrGone // an empty id would name all of them
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	return classify(call(ctx, u))
}

// classify makes an error of a call one of the port's, by the status alone:
// 410 is ErrGone, 429 ErrThrottled, 413 ErrTooLarge; every other status, and
// whatever kept an answer from coming, is ErrFailed. 403 is among these: it is
// what a missing grant and, at times, API Gateway's own trouble look like, and
// neither means that the connection is gone.
func classify(err error) error {
	if err == nil {
		return nil
	}
	kind := push.ErrFailed
	if s, ok := errors.AsType[*statusError](err); ok {
		switch s.status {
		case http.StatusGone:
			kind = push.ErrGone
		case http.StatusTooManyRequests:
			kind = push.ErrThrottled
		case http.StatusRequestEntityTooLarge:
			kind = push.ErrTooLarge
		}
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// instant is a time as AWS writes it, or in seconds as emulators do.
type instant struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler.
func (i *instant) UnmarshalJSON(b []byte) error {
	var seconds float64
	if json.Unmarshal(b, &seconds) == nil {
		i.Time = time.UnixMilli(int64(seconds * 1000)).UTC()
		return nil
	}
	return json.Unmarshal(b, &i.Time)
}
