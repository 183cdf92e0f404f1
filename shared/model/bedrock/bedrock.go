// Package bedrock talks to Amazon Bedrock's ConverseStream.
//
// Guarantees: those of package model. The AWS SDK makes the request, signs it and
// decodes the event stream, and never retries; its goroutines end before the range
// does.
package bedrock

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"laneway/shared/model"
	"laneway/shared/model/wire"
)

// Name is the provider id.
const Name = "bedrock"

// Config of a Provider.
type Config struct {
	// AWS has region, credentials and, for tests, the endpoint. A region is required.
	AWS aws.Config
	// Name is the provider id in errors; empty: bedrock.
	Name string
	// HTTPClient; nil: wire.Client, one for this provider.
	HTTPClient *http.Client
	// Now is for Retry-After headers that are dates; nil: time.Now.
	Now func() time.Time
}

// Provider is a model.Provider for one region of Bedrock.
type Provider struct {
	client *bedrockruntime.Client
	name   string
	now    func() time.Time
}

// New checks cfg and makes the provider; nothing is sent yet.
func New(cfg Config) (*Provider, error) {
	if cfg.AWS.Region == "" {
		return nil, errors.New("bedrock: no AWS region")
	}
	client := cfg.HTTPClient
	if client == nil {
		client = wire.Client()
	}
	p := &Provider{name: cmp.Or(cfg.Name, Name), now: cfg.Now}
	if p.now == nil {
		p.now = time.Now
	}
	p.client = bedrockruntime.NewFromConfig(cfg.AWS, func(o *bedrockruntime.Options) {
		o.Retryer = aws.NopRetryer{}
		o.HTTPClient = whole{client}
	})
	return p, nil
}

// whole sends bodies that are closed by nobody else. The SDK closes its own as soon
// as the answer begins, which may be before the transport has seen its end, and
// then the connection cannot be used again.
type whole struct{ client *http.Client }

// Do implements the SDK's HTTPClient.
func (w whole) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, fmt.Errorf("read the request: %w", err)
		}
		_ = r.Body.Close() // everything was read
		r.Body = io.NopCloser(bytes.NewReader(b))
	}
	return w.client.Do(r) //nolint:wrapcheck,gosec // the SDK looks for the client's own errors, and made the address
}

// Settings are what a configuration may say beside what the AWS SDK finds.
type Settings struct {
	Name     string // provider id in errors; empty: bedrock
	Region   string // empty: that of the environment
	Endpoint string // empty: the region's own
}

// FromEnvironment makes the provider from what the AWS SDK finds: variables,
// profiles, the machine's role.
func FromEnvironment(ctx context.Context, s Settings) (*Provider, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("bedrock: load the AWS configuration: %w", err)
	}
	if s.Region != "" {
		cfg.Region = s.Region
	}
	if s.Endpoint != "" {
		cfg.BaseEndpoint = aws.String(s.Endpoint)
	}
	return New(Config{AWS: cfg, Name: s.Name})
}

// Stream implements model.Provider.
func (p *Provider) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Part, error] {
	return func(yield func(model.Part, error) bool) {
		in, err := input(r)
		if err != nil {
			yield(model.Part{}, p.failure(r).Fail(model.Format))
			return
		}
		// Cancelled when the range is left, however it is left: that is what
		// closes the connection.
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		out, err := p.client.ConverseStream(ctx, in)
		if err != nil {
			yield(model.Part{}, p.refused(ctx, r, err))
			return
		}
		model.Progress(ctx)()
		events := out.GetStream()
		d := &decoder{failure: p.failure(r), ctx: ctx, yield: yield, blocks: make(map[int32]*open)}
		if d.run(events.Events(), events.Err) {
			finish(events, cancel)
		}
		cancel()
		_ = events.Close() // the stream is over, and so is any error in it
		for range events.Events() {
			// Until the SDK's goroutines have ended, which close this.
		}
	}
}

// drainTime is how long the end of a stream is waited for.
const drainTime = 20 * time.Millisecond

// finish reads the end of a stream whose message has ended, so that its connection
// can be used again; a server that keeps it open is cut.
func finish(events *bedrockruntime.ConverseStreamEventStream, cancel context.CancelFunc) {
	stop := time.AfterFunc(drainTime, cancel)
	defer stop.Stop()
	for range events.Events() {
		// What comes here has no meaning any more.
	}
}

// failure is what is known of every failure of a request.
func (p *Provider) failure(r model.Request) model.Failure {
	return model.Failure{Provider: p.name, Model: r.Model, Now: p.now()}
}

// refused makes the error of a request that got no stream.
func (p *Provider) refused(ctx context.Context, r model.Request, err error) *model.Error {
	f := p.failure(r)
	if cause := context.Cause(ctx); cause != nil {
		f.Err = cause
		return f.Classified()
	}
	describe(&f, err)
	if f.Status == 0 && f.Code == "" && strings.Contains(err.Error(), "get identity") {
		return f.Fail(model.Auth) // no credentials were found; nothing was sent
	}
	return f.Classified()
}

// describe takes an error of the SDK apart.
func describe(f *model.Failure, err error) {
	var (
		res *smithyhttp.ResponseError
		api smithy.APIError
	)
	if errors.As(err, &res) && res.Response != nil && res.Response.Response != nil {
		f.Status, f.Header = res.HTTPStatusCode(), res.Response.Header
	}
	if errors.As(err, &api) {
		f.Code, f.Text = api.ErrorCode(), api.ErrorMessage()
	}
	if f.Status == 0 {
		f.Err = err
	}
	if f.Err == nil || !errors.As(f.Err, &api) {
		return
	}
	f.Err = nil // an exception inside the stream: its code says it all
}
