package choose

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"

	"laneway/shared/model"
	"laneway/shared/model/demo"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	const local = "http://127.0.0.1:11434/v1"
	for _, row := range []struct {
		name string
		cfg  Config
		want Ref
	}{
		{"nothing set", Config{}, Ref{"demo", "demo"}},
		{"AWS credentials alone choose nothing", Config{AWS: true}, Ref{"demo", "demo"}},
		{"Anthropic's key", Config{AnthropicKey: "a"}, Ref{"anthropic", DefaultAnthropic}},
		{"both keys: Anthropic", Config{AnthropicKey: "a", OpenAIKey: "o"}, Ref{"anthropic", DefaultAnthropic}},
		{"OpenAI's key", Config{OpenAIKey: "o"}, Ref{"openai", DefaultOpenAI}},
		{"a server's address: ask it", Config{OpenAIBaseURL: local}, Ref{"openai", ""}},
		{"a server's address and key: ask it", Config{OpenAIKey: "o", OpenAIBaseURL: local}, Ref{"openai", ""}},
		{"LANEWAY_MODEL wins", Config{Selector: "openai/gpt-x", AnthropicKey: "a", OpenAIKey: "o"}, Ref{"openai", "gpt-x"}},
		{"split at the first slash only", Config{Selector: "openai/meta-llama/Llama-3", OpenAIBaseURL: local}, Ref{"openai", "meta-llama/Llama-3"}},
		{"provider alone", Config{Selector: "openai", AnthropicKey: "a", OpenAIKey: "o"}, Ref{"openai", DefaultOpenAI}},
		{"provider with an empty id", Config{Selector: "anthropic/", AnthropicKey: "a"}, Ref{"anthropic", DefaultAnthropic}},
		{"Anthropic's id", Config{Selector: "anthropic/claude-x", AnthropicKey: "a"}, Ref{"anthropic", "claude-x"}},
		{"Bedrock's id with colons and slashes", Config{Selector: "bedrock/arn:aws:bedrock:eu-west-1::x/eu.anthropic.claude:0", AWS: true}, Ref{"bedrock", "arn:aws:bedrock:eu-west-1::x/eu.anthropic.claude:0"}},
		{"the demo although keys are there", Config{Selector: "demo", AnthropicKey: "a"}, Ref{"demo", "demo"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := Decide(row.cfg)
			if err != nil || got != row.want {
				t.Errorf("= %+v, %v; want %+v", got, err, row.want)
			}
		})
	}
}

func TestErrorsNameTheVariableAndShowNoValue(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		cfg   Config
		names string
	}{
		{"no key for Anthropic", Config{Selector: "anthropic/x"}, "ANTHROPIC_API_KEY"},
		{"no key for OpenAI", Config{Selector: "openai/x"}, "OPENAI_API_KEY"},
		{"no id for Bedrock", Config{Selector: "bedrock", AWS: true}, "LANEWAY_MODEL"},
		{"no credentials for Bedrock", Config{Selector: "bedrock/x"}, "AWS_ACCESS_KEY_ID"},
		{"demo with an id", Config{Selector: "demo/x"}, "LANEWAY_MODEL"},
		{"unknown provider", Config{Selector: "mistral/x"}, "mistral"},
		{"a key in the wrong variable", Config{Selector: "sk-secret-key"}, "LANEWAY_MODEL"},
		{"a lone slash", Config{Selector: "/x"}, "LANEWAY_MODEL"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, err := Decide(row.cfg)
			if err == nil || !strings.Contains(err.Error(), row.names) || strings.Contains(err.Error(), "secret") {
				t.Errorf("err = %v", err)
			}
			if _, _, err := Select(t.Context(), row.cfg, Makers{}); err == nil {
				t.Error("Select takes it")
			}
			if _, err := Known(row.cfg); err == nil {
				t.Error("Known takes it")
			}
		})
	}
}

// server stands for an adapter; only what Select asks of it matters here.
type server struct {
	list []model.Info
	err  error
}

func (s *server) Stream(context.Context, model.Request) iter.Seq2[model.Part, error] { return nil }

func (s *server) ListModels(context.Context) ([]model.Info, error) { return s.list, s.err }

func makers(s *server) Makers {
	return Makers{
		Anthropic: func(Config) (model.Provider, error) { return s, nil },
		OpenAI:    func(Config) (Lister, error) { return s, nil },
		Bedrock:   func(context.Context) (model.Provider, error) { return s, nil },
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	info := func(provider, id string) model.Info {
		return model.Info{ID: id, Name: id, Provider: provider, ContextWindow: ContextWindow(id)}
	}
	s := &server{list: []model.Info{{ID: "qwen3", Name: "qwen3", Provider: "openai"}, {ID: "phi", Name: "phi", Provider: "openai"}}}
	for _, row := range []struct {
		name  string
		cfg   Config
		want  model.Selected
		infos []model.Info
	}{
		{
			"a server without an id: the first of its models",
			Config{OpenAIBaseURL: "http://10.0.0.7:8000/v1"},
			model.Selected{Provider: s, Name: "openai", Model: "qwen3", Endpoint: model.Local},
			[]model.Info{info("openai", "qwen3"), info("openai", "phi"), demo.Info()},
		},
		{
			"a server with an id is not asked",
			Config{Selector: "openai/phi:cloud", OpenAIBaseURL: "http://10.0.0.7:8000/v1"},
			model.Selected{Provider: s, Name: "openai", Model: "phi:cloud", Endpoint: model.Cloud},
			[]model.Info{info("openai", "phi:cloud"), demo.Info()},
		},
		{
			"both keys",
			Config{AnthropicKey: "a", OpenAIKey: "o"},
			model.Selected{Provider: s, Name: "anthropic", Model: DefaultAnthropic, Endpoint: model.Cloud, ContextWindow: 200_000},
			[]model.Info{info("anthropic", DefaultAnthropic), info("openai", DefaultOpenAI), demo.Info()},
		},
		{
			"Bedrock",
			Config{Selector: "bedrock/eu.anthropic.claude-x-v1:0", AWS: true},
			model.Selected{Provider: s, Name: "bedrock", Model: "eu.anthropic.claude-x-v1:0", Endpoint: model.Cloud, ContextWindow: 200_000},
			[]model.Info{info("bedrock", "eu.anthropic.claude-x-v1:0"), demo.Info()},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, infos, err := Select(t.Context(), row.cfg, makers(s))
			if err != nil || got != row.want {
				t.Errorf("= %+v, %v; want %+v", got, err, row.want)
			}
			if diff := cmp.Diff(row.infos, infos); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSelectTheDemo(t *testing.T) {
	t.Parallel()
	got, infos, err := Select(t.Context(), Config{}, Makers{})
	if err != nil || got.Name != "demo" || got.Model != "demo" || got.Endpoint != model.Local {
		t.Errorf("= %+v, %v", got, err)
	}
	if _, ok := got.Provider.(*demo.Provider); !ok {
		t.Errorf("provider is a %T", got.Provider)
	}
	if len(infos) != 1 || infos[0] != demo.Info() {
		t.Errorf("infos = %+v", infos)
	}
	mine := &server{}
	if got, _, _ := Select(t.Context(), Config{}, Makers{Demo: func() model.Provider { return mine }}); got.Provider != mine {
		t.Errorf("provider is a %T", got.Provider)
	}
}

func TestSelectFailures(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, row := range []struct {
		name  string
		cfg   Config
		m     Makers
		names string
	}{
		{"the server does not answer", Config{OpenAIBaseURL: "http://h/v1"}, makers(&server{err: broken}), "OPENAI_BASE_URL"},
		{"the server has no models", Config{OpenAIBaseURL: "http://h/v1"}, makers(&server{}), "OPENAI_BASE_URL"},
		{"not built in: openai", Config{OpenAIKey: "o"}, Makers{}, "not built in"},
		{"not built in: anthropic", Config{AnthropicKey: "o"}, Makers{}, "not built in"},
		{"not built in: bedrock", Config{Selector: "bedrock/x", AWS: true}, Makers{}, "not built in"},
		{"the adapter refuses the address", Config{OpenAIKey: "o"}, Makers{OpenAI: func(Config) (Lister, error) { return nil, broken }}, "OPENAI_BASE_URL"},
		{"no region", Config{Selector: "bedrock/x", AWS: true}, Makers{Bedrock: func(context.Context) (model.Provider, error) { return nil, broken }}, "AWS_REGION"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := Select(t.Context(), row.cfg, row.m); err == nil || !strings.Contains(err.Error(), row.names) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestKnownAsksNobody(t *testing.T) {
	t.Parallel()
	infos, err := Known(Config{OpenAIBaseURL: "http://127.0.0.1:1/v1", AnthropicKey: "a", Selector: "openai"})
	if err != nil || len(infos) != 2 || infos[0].ID != DefaultAnthropic || infos[1] != demo.Info() {
		t.Errorf("infos = %+v, %v", infos, err)
	}
}

func TestDefaultsAreKnownToTheSDKs(t *testing.T) {
	t.Parallel()
	if DefaultAnthropic != anthropic.ModelClaudeSonnet5_5 {
		t.Error("Anthropic")
	}
	if DefaultOpenAI != openai.ChatModelGPT5_4 {
		t.Error("OpenAI")
	}
	for _, id := range []string{DefaultAnthropic, DefaultOpenAI} {
		if ContextWindow(id) == 0 {
			t.Errorf("%s has no context window", id)
		}
	}
	if ContextWindow("qwen3") != 0 {
		t.Error("a window for a model that nobody knows")
	}
}

func TestAModelIsNamedWithoutKeys(t *testing.T) {
	t.Parallel()
	for selector, want := range map[string]Ref{
		"":                {},
		"openai/gpt-x":    {OpenAI, "gpt-x"},
		"anthropic":       {Anthropic, DefaultAnthropic},
		"bedrock/some.id": {Bedrock, "some.id"},
		"demo":            {Demo, Demo},
	} {
		if got, err := Named(selector); err != nil || got != want {
			t.Errorf("%q: %+v, %v", selector, got, err)
		}
	}
	if _, err := Named("somebody/x"); err == nil {
		t.Error("an unknown provider is taken")
	}
}
