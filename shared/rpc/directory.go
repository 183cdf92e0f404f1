package rpc

import (
	"context"
	"time"
)

// Credential is one way to be let in by a provider, for models.authStatus.
type Credential struct {
	Profile  string // empty: the provider's only key
	Provider string
	Type     string // oauth, token, api-key, aws, none
	Needed   bool   // the provider does not work without
	Present  bool
}

// Credentials is a Directory that knows what opens its providers.
type Credentials interface {
	Credentials(ctx context.Context, tenant string) ([]Credential, error)
}

// Preferred is what is configured for everybody; empty fields are the built-in ones.
type Preferred struct {
	Verbose, Reasoning, Fast string
	// RunTimeout of runs that name none; 0: not said; negative: none.
	RunTimeout time.Duration
}

// Preferences is a Directory that knows what is configured for everybody.
type Preferences interface {
	Preferences(ctx context.Context, tenant string) (Preferred, error)
}
