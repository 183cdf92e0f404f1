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
		b    Bounds
		want time.Duration
	}{
		{"1: M alone", Bounds{Provider: 50 * s, Endpoint: cloud}, 50 * s},
		{"1: M above the class ceiling", Bounds{Provider: 900 * s, Endpoint: own}, 900 * s},
		{"1: M bounded by R", Bounds{Provider: 400 * s, Run: 100 * s, Endpoint: cloud}, 100 * s},
		{"1: M bounded by R, A does not count then", Bounds{Provider: 400 * s, Run: 300 * s, Agent: 10 * s, Endpoint: cloud}, 300 * s},
		{"1: M bounded by A", Bounds{Provider: 400 * s, Agent: 200 * s, Endpoint: cloud}, 200 * s},
		{"1: M with cron", Bounds{Provider: 400 * s, Run: 600 * s, Cron: true, Endpoint: cloud}, 400 * s},
		{"1: M on local", Bounds{Provider: 400 * s, Endpoint: local}, 400 * s},
		{"2: cron on self-hosted", Bounds{Run: 600 * s, Cron: true, Endpoint: own}, 600 * s},
		{"2: cron on local", Bounds{Run: 600 * s, Cron: true, Endpoint: local}, 600 * s},
		{"3: cron on cloud, long", Bounds{Run: 600 * s, Cron: true, Endpoint: cloud}, 60 * s},
		{"3: cron on cloud, short", Bounds{Run: 30 * s, Cron: true, Endpoint: cloud}, 30 * s},
		{"4: run on local", Bounds{Run: 600 * s, Endpoint: local}, 600 * s},
		{"4: run on self-hosted, long", Bounds{Run: 600 * s, Endpoint: own}, 300 * s},
		{"4: run on self-hosted, short", Bounds{Run: 200 * s, Endpoint: own}, 200 * s},
		{"4: run on cloud, long", Bounds{Run: 600 * s, Endpoint: cloud}, 120 * s},
		{"4: run on cloud, short", Bounds{Run: 20 * s, Agent: 10 * s, Endpoint: cloud}, 20 * s},
		{"5: agent on local", Bounds{Agent: 600 * s, Endpoint: local}, 600 * s},
		{"5: agent on self-hosted", Bounds{Agent: 600 * s, Endpoint: own}, 300 * s},
		{"5: agent on cloud", Bounds{Agent: 600 * s, Endpoint: cloud}, 120 * s},
		{"5: agent on cloud, short", Bounds{Agent: 20 * s, Endpoint: cloud}, 20 * s},
		{"5: agent on cloud, cron", Bounds{Agent: 600 * s, Cron: true, Endpoint: cloud}, 120 * s},
		{"6: local", Bounds{Endpoint: local}, 0},
		{"6: local, cron", Bounds{Cron: true, Endpoint: local}, 0},
		{"7: self-hosted", Bounds{Endpoint: own}, 300 * s},
		{"8: cloud", Bounds{Endpoint: cloud}, 120 * s},
		{"8: cloud, cron", Bounds{Cron: true, Endpoint: cloud}, 120 * s},
		{"no class counts as cloud", Bounds{}, 120 * s},
		{"no class counts as cloud, cron", Bounds{Run: 600 * s, Cron: true}, 60 * s},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := IdleWindow(row.b); got != row.want {
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
		b    Bounds
		want time.Duration
	}{
		{"cloud, none", Bounds{Endpoint: cloud}, 120 * s},
		{"self-hosted, none", Bounds{Endpoint: own}, 300 * s},
		{"loopback, none", Bounds{Endpoint: local}, 0},
		{"cloud, cron, run 600 s", Bounds{Endpoint: cloud, Cron: true, Run: 600 * s}, 60 * s},
		{"cloud, cron, run 30 s", Bounds{Endpoint: cloud, Cron: true, Run: 30 * s}, 30 * s},
		{"cloud, cron, none", Bounds{Endpoint: cloud, Cron: true}, 120 * s},
		{"vLLM on network, cron, run 600 s", Bounds{Endpoint: vllm, Cron: true, Run: 600 * s}, 600 * s},
		{"vLLM, none", Bounds{Endpoint: vllm}, 300 * s},
		{"cloud, provider 400 s, none", Bounds{Endpoint: cloud, Provider: 400 * s}, 400 * s},
		{"cloud, provider 400 s, agent 200 s", Bounds{Endpoint: cloud, Provider: 400 * s, Agent: 200 * s}, 200 * s},
		{"cloud, provider 400 s, run 100 s", Bounds{Endpoint: cloud, Provider: 400 * s, Run: 100 * s}, 100 * s},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := IdleWindow(row.b); got != row.want {
				t.Errorf("window = %s, want %s", got, row.want)
			}
		})
	}
}

func TestFirstEventWindow(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		b    Bounds
		want time.Duration
	}{
		{"cloud", Bounds{Endpoint: model.Cloud}, 120 * s},
		{"self-hosted", Bounds{Endpoint: model.SelfHosted}, 300 * s},
		{"local, although the idle window is off", Bounds{Endpoint: model.Local}, 300 * s},
		{"bounded by the run", Bounds{Endpoint: model.Cloud, Run: 20 * s, Agent: 5 * s}, 20 * s},
		{"bounded by the agent", Bounds{Endpoint: model.Local, Agent: 20 * s}, 20 * s},
		{"provider's timeout", Bounds{Endpoint: model.Cloud, Provider: 400 * s}, 400 * s},
		{"provider's timeout bounded by the run", Bounds{Endpoint: model.Cloud, Provider: 400 * s, Run: 20 * s}, 20 * s},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := FirstEventWindow(row.b); got != row.want {
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
