// Package catalog is what an operator configures about model providers: where they
// are, how they are spoken to, which keys open them, which models they have, and
// which model answers when another one fails.
//
// Guarantees: a configuration is checked once, whole, and every problem names its
// path in the file (providers.x.models[2].contextWindow); a key is never in the
// configuration, only the name of what holds it, so a Catalog can be stored, logged
// and listed; what a Catalog refers to is in it.
package catalog

import (
	"slices"
	"strings"
	"time"

	"laneway/shared/model"
)

// API is how a provider is spoken to.
type API string

// The kinds of API.
const (
	OpenAI    API = "openai-completions"
	Anthropic API = "anthropic-messages"
	Bedrock   API = "bedrock-converse-stream"
)

// Catalog is a checked configuration. The zero value configures nothing.
type Catalog struct {
	Providers []Provider // by id
	Profiles  []Profile  // by id
	// Order lists the profiles of a provider in the order in which they are tried.
	Order    map[string][]string
	Defaults Defaults
	Agents   map[string]Choice // what an agent has instead of the defaults
	Retry    Retry
}

// Retry bounds how a failed call is made again on the same model; nil: the built-in
// limits.
type Retry struct {
	MaxRetries *int           // 0: none
	MaxDelay   *time.Duration // longest wait that a provider may ask for where there is a fallback; 0: any
}

// Provider is a server of models.
type Provider struct {
	ID      string
	API     API
	BaseURL string   // empty: the API's own
	Region  string   // Bedrock's; empty: that of the environment
	Headers []Header // sent with every request
	Key     Key      // zero: none, or those of profiles
	// Timeout bounds the silence of the server (spec: runtime 5.2); 0: by its class.
	Timeout time.Duration
	Models  []Model
}

// Header is a header whose value may be a secret.
type Header struct {
	Name  string
	Value string // as it is, unless From names what holds it
	From  Key
}

// Model is a model of a provider. Zero values mean that it is not known.
type Model struct {
	ID            string
	Name          string
	Alias         string // short name for /model
	ContextWindow int    // tokens
	MaxTokens     int    // most tokens of an answer
	Reasoning     *bool  // it takes a thinking level
	Images        *bool  // it sees images
	Price         *model.Price
}

// KeySource says where a key is.
type KeySource string

// The sources of keys.
const (
	FromEnv    KeySource = "env"    // an environment variable
	FromSecret KeySource = "secret" // a member of the stack's secret, or a file in <data>/secrets
)

// Key names what holds a key; the key itself is never in a configuration.
type Key struct {
	Source KeySource
	Name   string
}

// Zero says that no key is named.
func (k Key) Zero() bool { return k.Name == "" }

// ProfileType is the kind of a credential.
type ProfileType string

// The kinds of credentials, the preferred ones first.
const (
	OAuth  ProfileType = "oauth"
	Token  ProfileType = "token"
	APIKey ProfileType = "api-key"
)

// Profile is one credential of a provider.
type Profile struct {
	ID       string
	Provider string
	Type     ProfileType
	Key      Key
}

// Choice is a model and what takes its place.
type Choice struct {
	Primary string // provider/id; empty: not chosen here
	// Fallbacks are tried in this order. nil: not said; empty: none.
	Fallbacks []string
	Thinking  string // level; empty: not said
}

// Defaults hold where an agent, a session and a message say nothing.
type Defaults struct {
	Choice

	Verbose   string // on, full, off
	Reasoning string // on, off, stream
	Fast      string // on, off, auto
	// Timeout is how long a run may execute that names no limit itself; 0: not said;
	// negative: for ever.
	Timeout time.Duration
}

// Provider finds a provider.
func (c *Catalog) Provider(id string) (Provider, bool) {
	i := slices.IndexFunc(c.Providers, func(p Provider) bool { return p.ID == id })
	if i < 0 {
		return Provider{}, false
	}
	return c.Providers[i], true
}

// Model finds a model of the provider; one that is not listed is known by its id alone.
func (p *Provider) Model(id string) Model {
	for _, m := range p.Models {
		if m.ID == id {
			return m
		}
	}
	return Model{ID: id}
}

// ProfilesOf lists the credentials of a provider in the order of the configuration:
// its auth.order first, then the others by id. ordered says that there is such an order.
func (c *Catalog) ProfilesOf(provider string) (list []Profile, ordered bool) {
	order := c.Order[provider]
	for _, id := range order {
		for _, p := range c.Profiles {
			if p.ID == id {
				list = append(list, p)
			}
		}
	}
	for _, p := range c.Profiles {
		if p.Provider == provider && !slices.Contains(order, p.ID) {
			list = append(list, p)
		}
	}
	return list, len(order) > 0
}

// Find resolves what a user calls a model: an alias, provider/id, or an id that one
// provider alone lists.
func (c *Catalog) Find(name string) (provider, id string, ok bool) {
	name = strings.TrimSpace(name)
	for _, p := range c.Providers {
		for _, m := range p.Models {
			if m.Alias != "" && strings.EqualFold(m.Alias, name) {
				return p.ID, m.ID, true
			}
		}
	}
	if provider, id, cut := strings.Cut(name, "/"); cut && id != "" {
		if _, known := c.Provider(provider); known {
			return provider, id, true
		}
	}
	for _, p := range c.Providers {
		for _, m := range p.Models {
			if m.ID == name {
				return p.ID, m.ID, true
			}
		}
	}
	return "", "", false
}

// Ref is a model's name in a configuration.
func Ref(provider, id string) string { return provider + "/" + id }
