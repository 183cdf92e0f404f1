package catalog_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"laneway/shared/model"
	"laneway/shared/model/catalog"
)

const whole = `{
  "providers": {
    "corp": {
      "api": "openai-completions", "baseUrl": "https://models.example/v1", "apiKey": {"secret": "corp-key"},
      "headers": {"x-team": "blue", "x-pass": "${CORP_PASS}"}, "timeoutSeconds": 90,
      "models": [
        {"id": "big", "name": "Big", "alias": "b", "contextWindow": 100000, "maxTokens": 8000, "reasoning": true, "images": false,
         "cost": {"input": 1.5, "output": 6, "cacheRead": 0.1, "cacheWrite": 2}},
        {"id": "small"}
      ]
    },
    "anthropic": {"apiKey": "${ANTHROPIC_API_KEY}"},
    "amazon-bedrock": {"region": "eu-west-1"}
  },
  "auth": {
    "profiles": {"corp:a": {"provider": "corp", "key": {"env": "A"}}, "corp:b": {"provider": "corp", "type": "oauth", "key": {"env": "B"}}},
    "order": {"corp": ["corp:b", "corp:a"]}
  },
  "defaults": {"model": {"primary": "corp/big", "fallbacks": ["anthropic/claude-x"]}, "thinking": "x-high", "verbose": "on", "reasoning": "stream", "fast": "auto", "timeoutSeconds": 600},
  "agents": {"research": {"model": "b", "thinking": "low"}, "strict": {"model": {"primary": "corp/small", "fallbacks": []}}}
}`

func TestParse_AWholeConfiguration(t *testing.T) {
	t.Parallel()
	got, err := catalog.Parse([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	yes, no := true, false
	want := &catalog.Catalog{
		Providers: []catalog.Provider{
			{ID: "amazon-bedrock", API: catalog.Bedrock, Region: "eu-west-1"},
			{ID: "anthropic", API: catalog.Anthropic, Key: catalog.Key{Source: catalog.FromEnv, Name: "ANTHROPIC_API_KEY"}},
			{
				ID: "corp", API: catalog.OpenAI, BaseURL: "https://models.example/v1", Key: catalog.Key{Source: catalog.FromSecret, Name: "corp-key"},
				Headers: []catalog.Header{{Name: "X-Pass", From: catalog.Key{Source: catalog.FromEnv, Name: "CORP_PASS"}}, {Name: "X-Team", Value: "blue"}},
				Timeout: 90 * time.Second,
				Models: []catalog.Model{
					{
						ID: "big", Name: "Big", Alias: "b", ContextWindow: 100_000, MaxTokens: 8000, Reasoning: &yes, Images: &no,
						Price: &model.Price{Input: 1.5, Output: 6, CacheRead: 0.1, CacheWrite: 2},
					},
					{ID: "small"},
				},
			},
		},
		Profiles: []catalog.Profile{
			{ID: "corp:a", Provider: "corp", Type: catalog.APIKey, Key: catalog.Key{Source: catalog.FromEnv, Name: "A"}},
			{ID: "corp:b", Provider: "corp", Type: catalog.OAuth, Key: catalog.Key{Source: catalog.FromEnv, Name: "B"}},
		},
		Order: map[string][]string{"corp": {"corp:b", "corp:a"}},
		Defaults: catalog.Defaults{
			Choice:  catalog.Choice{Primary: "corp/big", Fallbacks: []string{"anthropic/claude-x"}, Thinking: "xhigh"},
			Verbose: "on", Reasoning: "stream", Fast: "auto", Timeout: 10 * time.Minute,
		},
		Agents: map[string]catalog.Choice{"research": {Primary: "b", Thinking: "low"}, "strict": {Primary: "corp/small", Fallbacks: []string{}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := got.Refer(); err != nil {
		t.Error(err)
	}
}

// Each problem names its path, and none shows what may be a secret.
func TestParse_AProblemNamesItsPath(t *testing.T) {
	t.Parallel()
	provider := func(s string) string { return `{"providers": {"x": {"api": "openai-completions", ` + s + `}}}` }
	models := func(s string) string { return provider(`"models": [{"id": "a"}, {"id": "b"}, ` + s + `]`) }
	for _, row := range []struct{ in, path string }{
		{`[`, "the configuration is not JSON (line 1)"},
		{"{\n\n\"providers\": x}", "(line 3)"},
		{`[]`, "must be an object"},
		{`{"provider": {}}`, "provider: is not known here; known are agents, auth, defaults, providers"},
		{`{"providers": []}`, "providers: must be an object"},
		{`{"providers": {"X": {}}}`, "providers.X: a provider's id"},
		{`{"providers": {"demo": {}}}`, "providers.demo: demo is built in"},
		{`{"providers": {"x": {}}}`, "providers.x.api: is missing"},
		{`{"providers": {"x": {"api": "openai"}}}`, "providers.x.api: must be one of"},
		{provider(`"baseUrl": "ftp://hunter2"`), "providers.x.baseUrl: must be an http or https address"},
		{provider(`"baseUrl": "https://u:hunter2@h"`), "providers.x.baseUrl: must not hold a user"},
		{provider(`"apiKey": "sk-hunter2"`), "providers.x.apiKey: must name what holds the key"},
		{provider(`"apiKey": {"file": "hunter2"}`), "providers.x.apiKey: must be"},
		{provider(`"apiKey": {"env": "hunter2 hunter2"}`), "providers.x.apiKey.env: must be the name"},
		{provider(`"apiKey": {"secret": "../hunter2"}`), "providers.x.apiKey.secret: must be a name"},
		{provider(`"headers": {"a b": "x"}`), "providers.x.headers.a b: is not the name of a header"},
		{provider(`"headers": {"a": "x\ny"}`), "providers.x.headers.a: must be one line"},
		{provider(`"timeoutSeconds": 0`), "providers.x.timeoutSeconds: must be a whole number from 1 to 86400"},
		{provider(`"region": "r"`), "providers.x.region: is for bedrock-converse-stream only"},
		{`{"providers": {"bedrock": {"apiKey": "${K}"}}}`, "providers.bedrock.apiKey: Bedrock is opened by AWS credentials"},
		{models(`{"contextWindow": "200k", "id": "c"}`), "providers.x.models[2].contextWindow: must be a whole number"},
		{models(`{"id": "c", "contextWindow": 1.5}`), "providers.x.models[2].contextWindow: must be a whole number"},
		{models(`{"id": "c", "contextWindow": 10, "maxTokens": 11}`), "providers.x.models[2].maxTokens: must not be more than contextWindow (10)"},
		{models(`{}`), "providers.x.models[2].id: is missing"},
		{models(`{"id": "a"}`), "providers.x.models[2].id: is listed twice"},
		{models(`{"id": "c d"}`), "providers.x.models[2].id: must not contain white space"},
		{models(`{"id": "c", "alias": "two words"}`), "providers.x.models[2].alias: must be one word"},
		{models(`{"id": "c", "alias": "x/b"}`), "providers.x.models[2].alias: must be one word without '/'"},
		{models(`{"id": "c", "alias": "Default"}`), "providers.x.models[2].alias: must not be one of default"},
		{models(`{"id": "c", "alias": "q"}, {"id": "d", "alias": "Q"}`), "providers.x.models[3].alias: is the same as providers.x.models[2].alias"},
		{models(`{"id": "c", "alias": "D"}, {"id": "d"}`), "providers.x.models[2].alias: is the id of another model, x/d"},
		{
			`{"providers": {"anthropic": {"models": [{"id": "one", "alias": "one"}]}, "openai": {"models": [{"id": "two", "alias": "one"}]}}}`,
			"providers.openai.models[0].alias: is the id of another model, anthropic/one",
		},
		{provider(`"timeoutSeconds": 5, "timeoutSeconds": 6`), "providers.x.timeoutSeconds: is there twice"},
		{`{"providers": {}, "agents": {}, "providers": {}}`, "providers: is there twice"},
		{models(`{"id": "c", "reasoning": "yes"}`), "providers.x.models[2].reasoning: must be true or false"},
		{models(`{"id": "c", "cost": {"input": -1}}`), "providers.x.models[2].cost.input: must be a number from 0"},
		{models(`{"id": "c", "cost": {"in": 1}}`), "providers.x.models[2].cost.in: is not known here"},
		{`{"auth": {"profiles": {"p": {"provider": "nobody", "key": "${K}"}}}}`, "auth.profiles.p.provider: is not among the providers"},
		{`{"auth": {"profiles": {"p": {"provider": "openai"}}}}`, "auth.profiles.p.key: is missing"},
		{`{"auth": {"order": {"openai": ["p"]}}}`, "auth.order.openai[0]: is not a profile"},
		{`{"defaults": {"thinking": "hard"}}`, "defaults.thinking: must be one of off"},
		{`{"defaults": {"model": {"fallback": []}}}`, "defaults.model.fallback: is not known here"},
		{`{"defaults": {"timeoutSeconds": -1}}`, "defaults.timeoutSeconds: must be a whole number from 0 to 2147000"},
		{`{"retry": {"provider": {"maxRetries": -1}}}`, "retry.provider.maxRetries: must be a whole number from 0 to 100"},
		{`{"retry": {"provider": {"maxRetryDelayMs": "1m"}}}`, "retry.provider.maxRetryDelayMs: must be a whole number"},
		{`{"agents": {"A": {}}}`, "agents.A: an agent's id"},
	} {
		_, err := catalog.Parse([]byte(row.in))
		switch {
		case err == nil:
			t.Errorf("%s is taken", row.in)
		case !errors.Is(err, catalog.ErrInvalid) || !strings.Contains(err.Error(), row.path):
			t.Errorf("%s: %v does not say %q", row.in, err, row.path)
		case strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%s: %v shows a value", row.in, err)
		}
	}
}

func TestParse_AllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := catalog.Parse([]byte(`{"providers": {"x": {"timeoutSeconds": -1, "baseUrl": 7}}, "defaults": {"fast": "very"}}`))
	var p *catalog.PathError
	if !errors.As(err, &p) || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("%v", err)
	}
}

func TestRefer_NamesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	c, err := catalog.Parse([]byte(`{"providers": {"openai": {}}, "defaults": {"model": {"primary": "openai/x", "fallbacks": ["openai/y", "mistral/z"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Refer(); err == nil || !strings.Contains(err.Error(), "defaults.model.fallbacks[1]: names no model") {
		t.Error(err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	c, err := catalog.Parse([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"B": "corp/big", "corp/big": "corp/big", "small": "corp/small", "corp/unlisted": "corp/unlisted", "nobody/x": "/", "unlisted": "/", "corp/": "/",
	} {
		provider, id, ok := c.Find(name)
		if got := provider + "/" + id; got != want || ok != (want != "/") {
			t.Errorf("Find(%q) = %s, %v", name, got, ok)
		}
	}
}
