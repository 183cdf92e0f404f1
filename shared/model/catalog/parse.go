package catalog

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/thinking"
)

// Limits of a configuration.
const (
	MaxSize      = 256 << 10 // bytes of the whole; a row of the config table has room for it
	maxModels    = 500       // of one provider
	maxFallbacks = 16
	maxName      = 256
	maxTokens    = 100_000_000
	maxTimeout   = 24 * 3600 // seconds
	// maxRunTimeout is what a timer of the reference can hold, in seconds.
	maxRunTimeout = 2_147_000
)

var (
	providerID = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	profileID  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$`)
	headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,128}$`)
	agentID    = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
)

// Parse reads and checks a configuration. Its error answers errors.Is(ErrInvalid) and
// holds a *PathError for everything that is wrong.
func Parse(raw []byte) (*Catalog, error) {
	r := &reader{}
	c := &Catalog{Order: map[string][]string{}, Agents: map[string]Choice{}}
	switch {
	case len(raw) > MaxSize:
		r.addf("", "the configuration is longer than %d bytes", MaxSize)
	case !json.Valid(raw):
		r.addf("", "the configuration is not JSON%s", line(raw))
	default:
		r.object("", raw, map[string]member{
			"providers": func(path string, raw json.RawMessage) {
				r.each(path, raw, func(path, id string, raw json.RawMessage) { r.provider(c, path, id, raw) })
			},
			"auth":     func(path string, raw json.RawMessage) { r.auth(c, path, raw) },
			"defaults": func(path string, raw json.RawMessage) { r.defaults(c, path, raw) },
			"retry": func(path string, raw json.RawMessage) {
				r.object(path, raw, map[string]member{"provider": func(path string, raw json.RawMessage) { r.retry(c, path, raw) }})
			},
			"agents": func(path string, raw json.RawMessage) {
				r.each(path, raw, func(path, id string, raw json.RawMessage) { r.agent(c, path, id, raw) })
			},
		})
		r.profiles(c)
		r.aliasesOf(c)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// line says where the JSON breaks.
func line(raw []byte) string {
	var v any
	err := json.Unmarshal(raw, &v)
	s, ok := err.(*json.SyntaxError) //nolint:errorlint // made by the decoder, never wrapped
	if !ok {
		return ""
	}
	upTo := raw[:min(int(s.Offset), len(raw))]
	n := strings.Count(string(upTo), "\n") + 1
	return " (line " + itoa(n) + ")"
}

func (r *reader) provider(c *Catalog, path, id string, raw json.RawMessage) {
	if !providerID.MatchString(id) {
		r.addf(path, "a provider's id must match [a-z0-9][a-z0-9._-]{0,63}")
		return
	}
	if id == "demo" {
		r.addf(path, "demo is built in and cannot be configured")
		return
	}
	p := Provider{ID: id, API: apiOf(id)}
	var api string
	var seconds int
	before := len(r.problems)
	r.object(path, raw, map[string]member{
		"api":            r.word(&api, string(OpenAI), string(Anthropic), string(Bedrock)),
		"baseUrl":        r.address(&p.BaseURL),
		"region":         r.text(64, &p.Region),
		"apiKey":         r.key(&p.Key),
		"headers":        func(path string, raw json.RawMessage) { r.headers(&p, path, raw) },
		"timeoutSeconds": r.count(maxTimeout, &seconds),
		"models":         func(path string, raw json.RawMessage) { r.models(&p, path, raw) },
	})
	p.Timeout = time.Duration(seconds) * time.Second
	if api != "" {
		p.API = API(api)
	}
	switch {
	case len(r.problems) > before:
	case p.API == "":
		r.addf(join(path, "api"), "is missing: one of %s, %s, %s", OpenAI, Anthropic, Bedrock)
	case p.API == Bedrock && !p.Key.Zero():
		r.addf(join(path, "apiKey"), "Bedrock is opened by AWS credentials, not by a key")
	case p.API == Bedrock && len(p.Headers) > 0:
		r.addf(join(path, "headers"), "are not sent to Bedrock")
	case p.API != Bedrock && p.Region != "":
		r.addf(join(path, "region"), "is for %s only", Bedrock)
	}
	c.Providers = append(c.Providers, p)
}

// apiOf is the API of providers that everybody knows.
func apiOf(id string) API {
	switch id {
	case "openai":
		return OpenAI
	case "anthropic":
		return Anthropic
	case "bedrock", "amazon-bedrock":
		return Bedrock
	}
	return ""
}

// retry reads the limits of retries, of which 0 is one.
func (r *reader) retry(c *Catalog, path string, raw json.RawMessage) {
	r.object(path, raw, map[string]member{
		"maxRetries": r.whole(100, func(n int) { c.Retry.MaxRetries = &n }),
		"maxRetryDelayMs": r.whole(maxTimeout*1000, func(n int) {
			d := time.Duration(n) * time.Millisecond
			c.Retry.MaxDelay = &d
		}),
	})
}

func (r *reader) headers(p *Provider, path string, raw json.RawMessage) {
	r.each(path, raw, func(path, name string, raw json.RawMessage) {
		if !headerName.MatchString(name) {
			r.addf(path, "is not the name of a header")
			return
		}
		h := Header{Name: http.CanonicalHeaderKey(name)}
		var s string
		switch {
		case json.Unmarshal(raw, &s) != nil:
			r.key(&h.From)(path, raw)
		case variable.MatchString(s):
			r.key(&h.From)(path, raw)
		case strings.ContainsAny(s, "\r\n\x00") || len(s) > 4096:
			r.addf(path, "must be one line of at most 4096 bytes")
		default:
			h.Value = s
		}
		p.Headers = append(p.Headers, h)
	})
}

func (r *reader) models(p *Provider, path string, raw json.RawMessage) {
	seen := map[string]bool{}
	r.list(path, raw, maxModels, func(path string, raw json.RawMessage) {
		var m Model
		before := len(r.problems)
		r.object(path, raw, map[string]member{
			"id":            r.text(512, &m.ID),
			"name":          r.text(maxName, &m.Name),
			"alias":         r.text(64, &m.Alias),
			"contextWindow": r.count(maxTokens, &m.ContextWindow),
			"maxTokens":     r.count(maxTokens, &m.MaxTokens),
			"reasoning":     r.truth(&m.Reasoning),
			"images":        r.truth(&m.Images),
			"cost":          func(path string, raw json.RawMessage) { r.price(&m, path, raw) },
		})
		switch {
		case len(r.problems) > before:
		case m.ID == "":
			r.addf(join(path, "id"), "is missing")
		case !oneWord(m.ID):
			r.addf(join(path, "id"), "must not contain white space or control characters")
		case seen[m.ID]:
			r.addf(join(path, "id"), "is listed twice")
		case m.ContextWindow > 0 && m.MaxTokens > m.ContextWindow:
			r.addf(join(path, "maxTokens"), "must not be more than contextWindow (%d)", m.ContextWindow)
		}
		r.alias(join(path, "alias"), m.Alias)
		seen[m.ID] = true
		p.Models = append(p.Models, m)
	})
}

func (r *reader) price(m *Model, path string, raw json.RawMessage) {
	m.Price = &model.Price{}
	r.object(path, raw, map[string]member{
		"input": r.amount(&m.Price.Input), "output": r.amount(&m.Price.Output),
		"cacheRead": r.amount(&m.Price.CacheRead), "cacheWrite": r.amount(&m.Price.CacheWrite),
	})
}

func (r *reader) auth(c *Catalog, path string, raw json.RawMessage) {
	r.object(path, raw, map[string]member{
		"profiles": func(path string, raw json.RawMessage) {
			r.each(path, raw, func(path, id string, raw json.RawMessage) {
				p := Profile{ID: id, Type: APIKey}
				var kind string
				r.object(path, raw, map[string]member{
					"provider": r.text(maxName, &p.Provider),
					"type":     r.word(&kind, string(OAuth), string(Token), string(APIKey)),
					"key":      r.key(&p.Key),
				})
				if kind != "" {
					p.Type = ProfileType(kind)
				}
				if !profileID.MatchString(id) {
					r.addf(path, "a profile's id must match [A-Za-z0-9][A-Za-z0-9._:@-]{0,127}")
				}
				c.Profiles = append(c.Profiles, p)
			})
		},
		"order": func(path string, raw json.RawMessage) {
			r.each(path, raw, func(path, provider string, raw json.RawMessage) {
				c.Order[provider] = []string{}
				r.list(path, raw, maxFallbacks, func(path string, raw json.RawMessage) {
					var id string
					if r.text(maxName, &id)(path, raw); id != "" {
						c.Order[provider] = append(c.Order[provider], id)
					}
				})
			})
		},
	})
}

// choice are the members of a choice of models.
func (r *reader) choice(c *Choice) map[string]member {
	return map[string]member{
		"thinking": r.level(&c.Thinking),
		"model": func(path string, raw json.RawMessage) {
			if len(raw) > 0 && raw[0] == '"' {
				r.text(maxName, &c.Primary)(path, raw)
				return
			}
			r.object(path, raw, map[string]member{
				"primary": r.text(maxName, &c.Primary),
				"fallbacks": func(path string, raw json.RawMessage) {
					c.Fallbacks = []string{}
					r.list(path, raw, maxFallbacks, func(path string, raw json.RawMessage) {
						var ref string
						if r.text(maxName, &ref)(path, raw); ref != "" {
							c.Fallbacks = append(c.Fallbacks, ref)
						}
					})
				},
			})
		},
	}
}

func (r *reader) level(into *string) member {
	return func(path string, raw json.RawMessage) {
		var s string
		level, ok := "", false
		if json.Unmarshal(raw, &s) == nil {
			level, ok = thinking.Parse(s)
		}
		if !ok {
			r.addf(path, "must be one of %s", strings.Join(thinking.Names(thinking.All), ", "))
			return
		}
		*into = level
	}
}

func (r *reader) defaults(c *Catalog, path string, raw json.RawMessage) {
	members := r.choice(&c.Defaults.Choice)
	members["timeoutSeconds"] = r.whole(maxRunTimeout, func(n int) {
		if c.Defaults.Timeout = time.Duration(n) * time.Second; n == 0 {
			c.Defaults.Timeout = -1
		}
	})
	members["verbose"] = r.word(&c.Defaults.Verbose, "on", "full", "off")
	members["reasoning"] = r.word(&c.Defaults.Reasoning, "on", "off", "stream")
	members["fast"] = r.word(&c.Defaults.Fast, "on", "off", "auto")
	r.object(path, raw, members)
}

func (r *reader) agent(c *Catalog, path, id string, raw json.RawMessage) {
	if !agentID.MatchString(id) {
		r.addf(path, "an agent's id must match [a-z0-9][a-z0-9_-]{0,63}")
		return
	}
	var choice Choice
	r.object(path, raw, r.choice(&choice))
	c.Agents[id] = choice
}
