// Package anthropic talks to Anthropic's Messages API.
//
// Guarantees: those of package model. The SDK makes the request (address,
// credentials, headers and the API's version) and never retries; bodies and
// events are encoded and decoded here, with structs that hold only what is used,
// because the SDK's own unions cost several times as much a delta. Signed
// thinking goes back to the API byte for byte.
package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"laneway/shared/model"
	"laneway/shared/model/wire"
)

// Name is the provider id.
const Name = "anthropic"

// Config of a Provider.
type Config struct {
	// APIKey is required.
	APIKey string
	// BaseURL without the version, as https://api.anthropic.com, which is what
	// empty means.
	BaseURL string
	// HTTPClient; nil: wire.Client, one for this provider.
	HTTPClient *http.Client
	// MaxTokens of an answer when the request says nothing: the API has no default.
	// 0: 16384.
	MaxTokens int
	// Name is the provider id in errors; empty: anthropic.
	Name string
	// Header is sent with every request; nil: nothing more.
	Header http.Header
	// Now is for Retry-After headers that are dates; nil: time.Now.
	Now func() time.Time
}

// Provider is a model.Provider for the Messages API.
type Provider struct {
	client    sdk.Client
	name      string
	official  bool // Anthropic itself: service tiers are known there
	maxTokens int
	now       func() time.Time
}

const defaultBaseURL = "https://api.anthropic.com"

// New checks cfg and makes the provider; nothing is sent yet.
func New(cfg Config) (*Provider, error) {
	if cfg.APIKey == "" {
		return nil, errors.New("anthropic: no API key")
	}
	base, err := url.Parse(cmp.Or(cfg.BaseURL, defaultBaseURL))
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		// The address is not quoted: its user part may hold a password.
		return nil, errors.New("anthropic: the base URL is not an http or https address")
	}
	client := cfg.HTTPClient
	if client == nil {
		client = wire.Client()
	}
	p := &Provider{
		name: cmp.Or(cfg.Name, Name), official: base.Hostname() == "api.anthropic.com",
		maxTokens: cmp.Or(cfg.MaxTokens, 16384), now: cfg.Now,
	}
	if p.now == nil {
		p.now = time.Now
	}
	opts := []option.RequestOption{
		// What is configured here must be all that counts.
		option.WithoutEnvironmentDefaults(),
		option.WithoutOpenTelemetry(),
		option.WithAPIKey(cfg.APIKey),
		option.WithBaseURL(base.String()),
		option.WithHTTPClient(client),
		option.WithMaxRetries(0),
	}
	for name, values := range cfg.Header {
		for _, v := range values {
			opts = append(opts, option.WithHeader(name, v))
		}
	}
	p.client = sdk.NewClient(opts...)
	return p, nil
}

// Stream implements model.Provider.
func (p *Provider) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Part, error] {
	return func(yield func(model.Part, error) bool) {
		body, err := p.encode(r)
		if err != nil {
			yield(model.Part{}, p.failure(r).Fail(model.Format))
			return
		}
		// Cancelled when the range is left, however it is left: that is what
		// closes the connection.
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var res *http.Response
		err = p.client.Post(ctx, "v1/messages", body, &res,
			option.WithHeader("Content-Type", "application/json"), option.WithHeader("Accept", "text/event-stream"))
		if err == nil && res == nil {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			yield(model.Part{}, p.refused(ctx, r, err))
			return
		}
		model.Progress(ctx)()
		d := &decoder{failure: p.failure(r), ctx: ctx, yield: yield}
		if d.run(res.Body) {
			wire.Finish(res.Body, cancel)
			return
		}
		_ = res.Body.Close() // the stream is given up; there is nobody to tell
	}
}

// failure is what is known of every failure of a request.
func (p *Provider) failure(r model.Request) model.Failure {
	return model.Failure{Provider: p.name, Model: r.Model, Now: p.now()}
}

// refused makes the error of a request that got no stream.
func (p *Provider) refused(ctx context.Context, r model.Request, err error) *model.Error {
	f := p.failure(r)
	var api *sdk.Error
	switch cause := context.Cause(ctx); {
	case cause != nil:
		f.Err = cause
	case errors.As(err, &api):
		f.Status = api.StatusCode
		f.Code, f.Text = describe([]byte(api.RawJSON()))
		if api.Response != nil {
			f.Header = api.Response.Header
		}
	default:
		f.Err = err
	}
	return f.Classified()
}

// describe takes an error body or event apart: a code and all the words.
func describe(body []byte) (code, text string) {
	var e struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil {
		return "", string(body)
	}
	return e.Error.Type, e.Error.Message
}
