// Package adapters knows all model adapters. Only what makes model calls imports
// it; everything else needs package choose alone, which links no SDK.
package adapters

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"laneway/shared/model"
	"laneway/shared/model/anthropic"
	"laneway/shared/model/bedrock"
	"laneway/shared/model/catalog"
	"laneway/shared/model/choose"
	"laneway/shared/model/openai"
	"laneway/shared/model/route"
	"laneway/shared/model/wire"
)

// Makers make all adapters that there are, over one HTTP client; nil is wire's.
func Makers(client *http.Client) choose.Makers {
	if client == nil {
		client = wire.Client()
	}
	return choose.Makers{
		Anthropic: func(cfg choose.Config) (model.Provider, error) {
			p, err := anthropic.New(anthropic.Config{APIKey: cfg.AnthropicKey, BaseURL: cfg.AnthropicURL, HTTPClient: client})
			if err != nil {
				return nil, fmt.Errorf("make the adapter: %w", err)
			}
			return p, nil
		},
		OpenAI: func(cfg choose.Config) (choose.Lister, error) {
			p, err := openai.New(openai.Config{APIKey: cfg.OpenAIKey, BaseURL: cfg.OpenAIBaseURL, HTTPClient: client})
			if err != nil {
				return nil, fmt.Errorf("make the adapter: %w", err)
			}
			return p, nil
		},
		Bedrock: func(ctx context.Context) (model.Provider, error) {
			p, err := bedrock.FromEnvironment(ctx, bedrock.Settings{})
			if err != nil {
				return nil, fmt.Errorf("make the adapter: %w", err)
			}
			return p, nil
		},
	}
}

// Make makes the adapter of a configured provider, over one HTTP client for all; nil is
// wire's.
func Make(client *http.Client) func(context.Context, route.Spec) (model.Provider, error) {
	if client == nil {
		client = wire.Client()
	}
	return func(ctx context.Context, s route.Spec) (p model.Provider, err error) {
		switch s.API {
		case catalog.Anthropic:
			p, err = anthropic.New(anthropic.Config{Name: s.Name, APIKey: s.Key, BaseURL: s.BaseURL, Header: s.Header, HTTPClient: client})
		case catalog.OpenAI:
			p, err = openai.New(openai.Config{Name: s.Name, APIKey: s.Key, BaseURL: s.BaseURL, Header: s.Header, HTTPClient: client})
		case catalog.Bedrock:
			p, err = bedrock.FromEnvironment(ctx, bedrock.Settings{Name: s.Name, Region: s.Region, Endpoint: s.BaseURL})
		default:
			err = errors.New("api is not one that is known here")
		}
		if err != nil {
			return nil, fmt.Errorf("make the adapter: %w", err)
		}
		return p, nil
	}
}
