package watch

import (
	"testing"
	"time"

	"laneway/shared/model"
)

const s = time.Second

func TestIdleWindow(t *testing.T) {
	t.Parallel()
	const cloud, own, local = model.Cloud, model.SelfHosted, model.Local
	for _, row := range []struct {
		name string
		w    Windows
		want time.Duration
	}{
		{"1: M alone", Windows{ProviderTimeout: 50 * s, Endpoint: cloud}, 50 * s},
		{"1: M above the class ceiling", Windows{ProviderTimeout: 900 * s, Endpoint: own}, 900 * s},
		{"1: M bounded by R", Windows{ProviderTimeout: 400 * s, RunTimeout: 100 * s, Endpoint: cloud}, 100 * s},
		{"1: M bounded by R, A does not count then", Windows{ProviderTimeout: 400 * s, RunTimeout: 300 * s, AgentTimeout: 10 * s, Endpoint: cloud}, 300 * s},
		{"1: M bounded by A", Windows{ProviderTimeout: 400 * s, AgentTimeout: 200 * s, Endpoint: cloud}, 200 * s},
		{"1: M with cron", Windows{ProviderTimeout: 400 * s, RunTimeout: 600 * s, Cron: true, Endpoint: cloud}, 400 * s},
		{"1: M on local", Windows{ProviderTimeout: 400 * s, Endpoint: local}, 400 * s},
		{"2: cron on self-hosted", Windows{RunTimeout: 600 * s, Cron: true, Endpoint: own}, 600 * s},
		{"2: cron on local", Windows{RunTimeout: 600 * s, Cron: true, Endpoint: local}, 600 * s},
		{"3: cron on cloud, long", Windows{RunTimeout: 600 * s, Cron: true, Endpoint: cloud}, 60 * s},
		{"3: cron on cloud, short", Windows{RunTimeout: 30 * s, Cron: true, Endpoint: cloud}, 30 * s},
		{"4: run on local", Windows{RunTimeout: 600 * s, Endpoint: local}, 600 * s},
		{"4: run on self-hosted, long", Windows{RunTimeout: 600 * s, Endpoint: own}, 300 * s},
		{"4: run on self-hosted, short", Windows{RunTimeout: 200 * s, Endpoint: own}, 200 * s},
		{"4: run on cloud, long", Windows{RunTimeout: 600 * s, Endpoint: cloud}, 120 * s},
		{"4: run on cloud, short", Windows{RunTimeout: 20 * s, AgentTimeout: 10 * s, Endpoint: cloud}, 20 * s},
		{"5: agent on local", Windows{AgentTimeout: 600 * s, Endpoint: local}, 600 * s},
		{"5: agent on self-hosted", Windows{AgentTimeout: 600 * s, Endpoint: own}, 300 * s},
		{"5: agent on cloud", Windows{AgentTimeout: 600 * s, Endpoint: cloud}, 120 * s},
		{"5: agent on cloud, short", Windows{AgentTimeout: 20 * s, Endpoint: cloud}, 20 * s},
		{"5: agent on cloud, cron", Windows{AgentTimeout: 600 * s, Cron: true, Endpoint: cloud}, 120 * s},
		{"6: local", Windows{Endpoint: local}, 0},
		{"6: local, cron", Windows{Cron: true, Endpoint: local}, 0},
		{"7: self-hosted", Windows{Endpoint: own}, 300 * s},
		{"8: cloud", Windows{Endpoint: cloud}, 120 * s},
		{"8: cloud, cron", Windows{Cron: true, Endpoint: cloud}, 120 * s},
		{"no class counts as cloud", Windows{}, 120 * s},
		{"no class counts as cloud, cron", Windows{RunTimeout: 600 * s, Cron: true}, 60 * s},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := IdleWindow(row.w); got != row.want {
				t.Errorf("window = %s, want %s", got, row.want)
			}
		})
	}
}

// Runtime section 11, no. 59, with the classes found from addresses.
func TestIdleMatrix(t *testing.T) {
	t.Parallel()
	class := func(base, provider string) model.Endpoint { return Class(Target{BaseURL: base, Provider: provider}) }
	var (
		cloud = class("https://api.anthropic.com", "anthropic")
		own   = class("http://host.docker.internal:8000/v1", "openai")
		local = class("http://127.0.0.1:11434/v1", "ollama")
		vllm  = class("http://gpu.example.com:8000/v1", "vllm")
	)
	for _, row := range []struct {
		name string
		w    Windows
		want time.Duration
	}{
		{"cloud, none", Windows{Endpoint: cloud}, 120 * s},
		{"self-hosted, none", Windows{Endpoint: own}, 300 * s},
		{"loopback, none", Windows{Endpoint: local}, 0},
		{"cloud, cron, run 600 s", Windows{Endpoint: cloud, Cron: true, RunTimeout: 600 * s}, 60 * s},
		{"cloud, cron, run 30 s", Windows{Endpoint: cloud, Cron: true, RunTimeout: 30 * s}, 30 * s},
		{"cloud, cron, none", Windows{Endpoint: cloud, Cron: true}, 120 * s},
		{"vLLM on network, cron, run 600 s", Windows{Endpoint: vllm, Cron: true, RunTimeout: 600 * s}, 600 * s},
		{"vLLM, none", Windows{Endpoint: vllm}, 300 * s},
		{"cloud, provider 400 s, none", Windows{Endpoint: cloud, ProviderTimeout: 400 * s}, 400 * s},
		{"cloud, provider 400 s, agent 200 s", Windows{Endpoint: cloud, ProviderTimeout: 400 * s, AgentTimeout: 200 * s}, 200 * s},
		{"cloud, provider 400 s, run 100 s", Windows{Endpoint: cloud, ProviderTimeout: 400 * s, RunTimeout: 100 * s}, 100 * s},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := IdleWindow(row.w); got != row.want {
				t.Errorf("window = %s, want %s", got, row.want)
			}
		})
	}
}

func TestFirstEventWindow(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		w    Windows
		want time.Duration
	}{
		{"cloud", Windows{Endpoint: model.Cloud}, 120 * s},
		{"self-hosted", Windows{Endpoint: model.SelfHosted}, 300 * s},
		{"local, although the idle window is off", Windows{Endpoint: model.Local}, 300 * s},
		{"bounded by the run", Windows{Endpoint: model.Cloud, RunTimeout: 20 * s, AgentTimeout: 5 * s}, 20 * s},
		{"bounded by the agent", Windows{Endpoint: model.Local, AgentTimeout: 20 * s}, 20 * s},
		{"provider's timeout", Windows{Endpoint: model.Cloud, ProviderTimeout: 400 * s}, 400 * s},
		{"provider's timeout bounded by the run", Windows{Endpoint: model.Cloud, ProviderTimeout: 400 * s, RunTimeout: 20 * s}, 20 * s},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := FirstEventWindow(row.w); got != row.want {
				t.Errorf("window = %s, want %s", got, row.want)
			}
		})
	}
}

func TestEndpointClass(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		t    Target
		want model.Endpoint
	}{
		{Target{BaseURL: "http://localhost:1234/v1"}, model.Local},
		{Target{BaseURL: "http://LOCALHOST./v1"}, model.Local},
		{Target{BaseURL: "localhost:1234"}, model.Local},
		{Target{BaseURL: "http://0.0.0.0:1234"}, model.Local},
		{Target{BaseURL: "http://[::1]:1234"}, model.Local},
		{Target{BaseURL: "http://[::ffff:127.0.0.1]:1234"}, model.Local},
		{Target{BaseURL: "http://[::ffff:127.9.9.9]"}, model.Local},
		{Target{BaseURL: "http://[::ffff:10.0.0.1]"}, model.Cloud},
		{Target{BaseURL: "http://[::ffff:192.168.0.1]"}, model.Cloud},
		{Target{BaseURL: "http://studio.local"}, model.Local},
		{Target{BaseURL: "http://local"}, model.Cloud},
		{Target{BaseURL: "http://notlocal"}, model.Cloud},
		{Target{BaseURL: "http://[fc00::1]"}, model.Local},
		{Target{BaseURL: "http://[fdff::1]"}, model.Local},
		{Target{BaseURL: "http://[fe80::1%25eth0]"}, model.Local},
		{Target{BaseURL: "http://[fec0::1]"}, model.Cloud},
		{Target{BaseURL: "http://[2001:db8::1]"}, model.Cloud},
		{Target{BaseURL: "http://127.255.0.1"}, model.Local},
		{Target{BaseURL: "http://10.1.2.3"}, model.Local},
		{Target{BaseURL: "http://11.1.2.3"}, model.Cloud},
		{Target{BaseURL: "http://172.16.0.1"}, model.Local},
		{Target{BaseURL: "http://172.31.255.255"}, model.Local},
		{Target{BaseURL: "http://172.32.0.1"}, model.Cloud},
		{Target{BaseURL: "http://192.168.1.1"}, model.Local},
		{Target{BaseURL: "http://192.169.1.1"}, model.Cloud},
		{Target{BaseURL: "http://100.64.0.1"}, model.Local},
		{Target{BaseURL: "http://100.127.255.255"}, model.Local},
		{Target{BaseURL: "http://100.128.0.1"}, model.Cloud},
		{Target{BaseURL: "http://docker.orb.internal"}, model.SelfHosted},
		{Target{BaseURL: "http://host.docker.internal:11434"}, model.SelfHosted},
		{Target{BaseURL: "http://host.orb.internal"}, model.SelfHosted},
		{Target{BaseURL: "http://other.internal"}, model.Cloud},
		{Target{BaseURL: "https://gpu.example.com", Provider: "ollama"}, model.SelfHosted},
		{Target{BaseURL: "https://gpu.example.com", Provider: "lmstudio"}, model.SelfHosted},
		{Target{BaseURL: "https://gpu.example.com", Provider: "vLLM-east"}, model.SelfHosted},
		{Target{BaseURL: "https://gpu.example.com", Provider: "sglang"}, model.SelfHosted},
		{Target{BaseURL: "https://gpu.example.com", Provider: "llama-cpp"}, model.SelfHosted},
		{Target{BaseURL: "https://ollama.com", Provider: "ollama-cloud"}, model.Cloud},
		{Target{BaseURL: "http://gpu:8000", Provider: "vllm"}, model.SelfHosted},
		{Target{BaseURL: "http://gpu:8000", Provider: "openai"}, model.Cloud},
		{Target{BaseURL: "http://gpu:8000", Provider: "openai", LocalService: true}, model.SelfHosted},
		{Target{BaseURL: "http://gpu:8000", Provider: "openai", APIKey: "custom-local"}, model.SelfHosted},
		{Target{BaseURL: "http://gpu:8000", Provider: "openai", APIKey: "ollama-local"}, model.SelfHosted},
		{Target{BaseURL: "http://gpu.example.com:8000", Provider: "openai", APIKey: "ollama-local"}, model.Cloud},
		{Target{BaseURL: "http://127.0.0.1:11434", Provider: "ollama", Model: "qwen3:480b:cloud"}, model.Cloud},
		{Target{BaseURL: "http://127.0.0.1:11434", Provider: "ollama", Model: "cloud"}, model.Local},
		{Target{Provider: "openai"}, model.Cloud},
		{Target{Provider: "anthropic", APIKey: "custom-local"}, model.Cloud},
		{Target{BaseURL: "http://%zz"}, model.Cloud},
	} {
		if got := Class(row.t); got != row.want {
			t.Errorf("%+v: %s, want %s", row.t, got, row.want)
		}
	}
}
