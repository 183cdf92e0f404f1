package route_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/catalog"
	"laneway/shared/model/choose"
	"laneway/shared/model/retry"
	"laneway/shared/model/route"
)

type nobody struct{ spec route.Spec }

func (nobody) Stream(context.Context, model.Request) iter.Seq2[model.Part, error] { return nil }

func (nobody) ListModels(context.Context) ([]model.Info, error) {
	return []model.Info{{ID: "served", Name: "served", Provider: "openai"}}, nil
}

const file = `{
  "providers": {
    "a": {"api": "openai-completions", "baseUrl": "http://127.0.0.1:1/v1", "timeoutSeconds": 7, "headers": {"x-k": "${HEADER}"},
      "models": [{"id": "one", "alias": "first", "contextWindow": 1000, "maxTokens": 10, "reasoning": true}, {"id": "two"}]},
    "b": {"api": "anthropic-messages", "apiKey": "${B_KEY}", "models": [{"id": "claude-x"}]},
    "c": {"api": "openai-completions", "baseUrl": "http://127.0.0.1:2/v1", "models": [{"id": "three"}]}
  },
  "auth": {"profiles": {"c:1": {"provider": "c", "key": {"secret": "one"}}, "c:2": {"provider": "c", "key": {"secret": "gone"}}}},
  "defaults": {"model": {"primary": "a/one", "fallbacks": ["b/claude-x", "a/one", "c/three"]}, "thinking": "low"},
  "agents": {"strict": {"model": "a/two"}, "own": {"model": {"primary": "a/two", "fallbacks": ["c/three"]}}, "none": {"model": {"fallbacks": []}}}
}`

func keys(k catalog.Key) string {
	return map[string]string{"B_KEY": "bb", "HEADER": "hh", "one": "11"}[k.Name]
}

func open(t *testing.T, text string, change ...func(*route.Config)) (*route.Set, error) {
	t.Helper()
	cfg := route.Config{
		Secret: keys,
		Make:   func(_ context.Context, s route.Spec) (model.Provider, error) { return nobody{s}, nil },
		Makers: choose.Makers{OpenAI: func(choose.Config) (choose.Lister, error) { return nobody{}, nil }},
	}
	if text != "" {
		c, err := catalog.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		cfg.Catalog = c
	}
	for _, f := range change {
		f(&cfg)
	}
	return route.Open(t.Context(), cfg)
}

// Runtime 7.5, each row by its selection source.
func TestChain_7_5(t *testing.T) {
	t.Parallel()
	s, err := open(t, file)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		q    route.Question
		want string
	}{
		{"configured default", route.Question{Agent: "main"}, "a/one b/claude-x c/three"},
		{"agent primary: strict", route.Question{Agent: "strict"}, "a/two"},
		{"agent primary with its own fallbacks", route.Question{Agent: "own"}, "a/two c/three"},
		{"agent with fallbacks []: strict", route.Question{Agent: "none"}, "a/one"},
		{"user session override: strict", route.Question{Agent: "main", SessionProvider: "c", SessionModel: "three", SessionSource: route.SourceUser}, "c/three"},
		{"legacy session override without a source: strict", route.Question{Agent: "main", SessionProvider: "c", SessionModel: "three"}, "c/three"},
		{"session override by the gateway itself", route.Question{Agent: "main", SessionModel: "first", SessionSource: route.SourceAuto}, "a/one b/claude-x c/three"},
		{`explicit "default"`, route.Question{Agent: "main", SessionSource: route.SourceDefault, SessionModel: "c/three"}, "a/one b/claude-x c/three"},
		{"cron payload.model: configured fallbacks", route.Question{Agent: "main", Model: "a/two"}, "a/two b/claude-x a/one c/three"},
		{"cron payload.fallbacks []: strict", route.Question{Agent: "main", Model: "a/two", Fallbacks: []string{}}, "a/two"},
		{"caller fallbacksOverride: exactly requested and list", route.Question{Agent: "main", Model: "a/two", Fallbacks: []string{"c/three", "a/two"}}, "a/two c/three"},
		{"caller fallbacksOverride without a model", route.Question{Agent: "main", Fallbacks: []string{"c/three"}}, "a/one c/three"},
		{"none supplied: requested, fallbacks, then the primary", route.Question{Agent: "own", Provider: "b", Model: "claude-y"}, "b/claude-y c/three a/two"},
		{"the run's own model is before the session's", route.Question{Agent: "none", Model: "b/claude-x", SessionModel: "c/three"}, "b/claude-x a/one"},
	} {
		got, err := s.Candidates(t.Context(), row.q)
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		var refs []string
		for i := range got {
			refs = append(refs, got[i].Ref())
		}
		if strings.Join(refs, " ") != row.want {
			t.Errorf("%s: %s, want %s", row.name, refs, row.want)
		}
	}
	var me *model.Error
	if _, err := s.Candidates(t.Context(), route.Question{Provider: "nobody", Model: "x"}); !errors.As(err, &me) || me.Class != model.ModelNotFound {
		t.Errorf("an unknown provider: %v", err)
	}
}

// TestTheDemoAnswersToItsNameAlone: whoever asked for another model must not take its
// words for that one's.
func TestTheDemoAnswersToItsNameAlone(t *testing.T) {
	t.Parallel()
	s, err := open(t, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", "demo"} {
		if all, err := s.Candidates(t.Context(), route.Question{Model: id}); err != nil || len(all) != 1 || all[0].Name != choose.Demo {
			t.Errorf("%q: %v, %v", id, all, err)
		}
	}
	for _, id := range []string{"openai/gpt-x", "demonstration"} {
		var me *model.Error
		if _, err := s.Candidates(t.Context(), route.Question{Model: id}); !errors.As(err, &me) || me.Class != model.ModelNotFound || !strings.Contains(me.Message, id) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestACandidateHasWhatWasConfigured(t *testing.T) {
	t.Parallel()
	s, err := open(t, file)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Candidates(t.Context(), route.Question{Agent: "main"})
	if err != nil {
		t.Fatal(err)
	}
	one, b, c := all[0], all[1], all[2]
	if one.Timeout.Seconds() != 7 || one.ContextWindow != 1000 || one.MaxTokens != 10 || !one.Reasons || one.Endpoint != model.Local {
		t.Errorf("%+v", one.Selected)
	}
	if p := one.Provider.(nobody).spec; p.Header.Get("X-K") != "hh" || p.BaseURL != "http://127.0.0.1:1/v1" || p.Key != "" {
		t.Errorf("%+v", p)
	}
	if p := b.Provider.(nobody).spec; p.Key != "bb" || p.API != catalog.Anthropic {
		t.Errorf("%+v", p)
	}
	if len(c.Profiles) != 2 || !c.Profiles[0].Present || c.Profiles[1].Present || c.Missing || c.Provider != nil {
		t.Errorf("%+v", c)
	}
	p, err := c.Open("c:1")
	if err != nil || p.(nobody).spec.Key != "11" {
		t.Errorf("%+v, %v", p, err)
	}
	if again, _ := c.Open("c:1"); again.(nobody).spec.Key != "11" {
		t.Error("another one the second time")
	}
}

// Runtime 5.2: the class of an endpoint as a configuration has it, markers of local
// servers in the place of a key included.
func TestRuntime52_ClassesOfConfiguredModels(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, provider, url, key, id string
		want                         model.Endpoint
	}{
		{"loopback", "x", "http://127.0.0.1:1/v1", "", "m", model.Local},
		{"carrier-grade NAT", "x", "http://100.64.0.9/v1", "", "m", model.Local},
		{"mapped loopback", "x", "http://[::ffff:127.0.0.1]/v1", "", "m", model.Local},
		{"mapped private IPv4 is not local", "x", "http://[::ffff:10.0.0.1]/v1", "", "m", model.Cloud},
		{"by the provider's id", "vllm-east", "https://gpu.example.com/v1", "", "m", model.SelfHosted},
		{"bare host", "x", "http://gpu:8000/v1", "one", "m", model.Cloud},
		{"bare host with a marker", "x", "http://gpu:8000/v1", "marker", "m", model.SelfHosted},
		{":cloud", "ollama", "http://127.0.0.1:1/v1", "", "qwen3:cloud", model.Cloud},
		{"cloud", "x", "https://api.example.com/v1", "", "m", model.Cloud},
	} {
		key := ""
		if row.key != "" {
			key = `, "apiKey": {"secret": "` + row.key + `"}`
		}
		s, err := open(t, `{"providers": {"`+row.provider+`": {"api": "openai-completions", "baseUrl": "`+row.url+`"`+key+`, "models": [{"id": "`+row.id+`"}]}},
			"defaults": {"model": "`+row.provider+"/"+row.id+`"}}`, func(c *route.Config) {
			c.Secret = func(k catalog.Key) string { return map[string]string{"one": "11", "marker": "ollama-local"}[k.Name] }
		})
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		all, err := s.Candidates(t.Context(), route.Question{})
		if err != nil || len(all) != 1 || all[0].Endpoint != row.want {
			t.Errorf("%s: %+v, %v; want %s", row.name, all, err, row.want)
		}
	}
}

func TestOpen_TheEnvironmentAndTheFile(t *testing.T) {
	t.Parallel()
	select1 := func(selector string) func(*route.Config) { return func(c *route.Config) { c.Env.Selector = selector } }
	for _, row := range []struct {
		name, file string
		change     func(*route.Config)
		want, bad  string
	}{
		{"LANEWAY_MODEL wins over the file", file, select1("c/three"), "c/three", ""},
		{"LANEWAY_MODEL by alias", file, select1("first"), "a/one", ""},
		{"LANEWAY_MODEL a provider alone", file, select1("b"), "b/claude-x", ""},
		{"LANEWAY_MODEL=demo beside a file", file, select1("demo"), "demo/demo", ""},
		{"without a file: the demo", "", select1(""), "demo/demo", ""},
		{"without a file: the server's first", "", func(c *route.Config) { c.Env.OpenAIBaseURL = "http://h/v1" }, "openai/served", ""},
		{"the file's fallbacks must be there", strings.Replace(file, "b/claude-x", "d/x", 1), select1(""), "", "defaults.model.fallbacks[0]"},
		{"LANEWAY_FALLBACKS must be there", file, func(c *route.Config) { c.Fallbacks = []string{"d/x"} }, "", "LANEWAY_FALLBACKS"},
		{"the primary's key must be there", strings.Replace(file, `"primary": "a/one"`, `"primary": "b/claude-x"`, 1), func(c *route.Config) { c.Secret = nil }, "", "B_KEY is not set"},
	} {
		s, err := open(t, row.file, row.change)
		switch {
		case row.bad != "":
			if err == nil || !strings.Contains(err.Error(), row.bad) {
				t.Errorf("%s: %v", row.name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", row.name, err)
		case s.Primary().Name+"/"+s.Primary().Model != row.want:
			t.Errorf("%s: %+v", row.name, s.Primary())
		}
	}
	s, err := open(t, file, func(c *route.Config) { c.Fallbacks = route.SplitList("c/three, a/two") })
	if err != nil {
		t.Fatal(err)
	}
	if _, fallbacks, level := s.Default("main"); !slices.Equal(fallbacks, []string{"c/three", "a/two"}) || level != "low" {
		t.Errorf("%v, %q", fallbacks, level)
	}
	if route.SplitList(" ") != nil || len(route.SplitList("none")) != 0 || route.SplitList("none") == nil {
		t.Error("SplitList")
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	s, err := open(t, file)
	if err != nil {
		t.Fatal(err)
	}
	var refs []string
	for _, i := range s.Infos() {
		refs = append(refs, i.Provider+"/"+i.ID)
	}
	if !slices.Equal(refs, []string{"a/one", "a/two", "b/claude-x", "c/three", "demo/demo"}) {
		t.Errorf("%s", refs)
	}
	got := map[string]bool{}
	for _, c := range s.Credentials() {
		got[c.Provider+"|"+c.Profile] = c.Present
	}
	for name, want := range map[string]bool{"a|": true, "b|": true, "c|c:1": true, "c|c:2": false} {
		if present, ok := got[name]; !ok || present != want {
			t.Errorf("%s: %v, %v in %v", name, present, ok, got)
		}
	}
}

// Runtime 7.2: retry.provider.maxRetries 0 is none, maxRetryDelayMs 0 no cap.
func TestRetryLimits_7_2(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]retry.Config{
		``: {MaxRetries: 5, MaxDelay: time.Minute},
		`{"retry": {"provider": {"maxRetries": 3, "maxRetryDelayMs": 1500}}}`: {MaxRetries: 3, MaxDelay: 1500 * time.Millisecond},
		`{"retry": {"provider": {"maxRetries": 0, "maxRetryDelayMs": 0}}}`:    {MaxRetries: -1, MaxDelay: -1},
	} {
		s, err := open(t, text)
		if err != nil {
			t.Fatal(err)
		}
		got := s.Retry(retry.Config{MaxRetries: 5, MaxDelay: time.Minute})
		if got.MaxRetries != want.MaxRetries || got.MaxDelay != want.MaxDelay {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
