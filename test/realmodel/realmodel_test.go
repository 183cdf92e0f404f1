// Package realmodel takes a real model, small and silly, through the whole way: from
// the command line over the gateway to the model and back. It judges the wire and the
// timing, never the answer.
package realmodel

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"laneway/test/conformance"
	"laneway/test/serving"
)

func TestMain(m *testing.M) {
	code := m.Run()
	serving.Cleanup()
	os.Exit(code)
}

// setup is a gateway before a real model, and a proxy before the gateway.
func setup(t *testing.T) *conformance.Proxy {
	t.Helper()
	url := os.Getenv("LANEWAY_REAL_MODEL_URL")
	if url == "" {
		t.Skip("needs a real model: make model")
	}
	g := serving.Start(t, serving.Options{Env: []string{"OPENAI_BASE_URL=" + url, "OPENAI_API_KEY=none"}})
	p := conformance.StartProxy(g.URL)
	t.Cleanup(p.Close)
	return p
}

// command is a client that can send one message, ours or the stock one.
type command func(ctx context.Context, t *testing.T, url, session, message string) *exec.Cmd

func ours(ctx context.Context, t *testing.T, url, session, message string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, serving.Binary(t), "agent", "--session-key", session, "--message", message)
	cmd.Env = []string{"HOME=" + t.TempDir(), "OPENCLAW_GATEWAY_URL=" + url, "OPENCLAW_GATEWAY_TOKEN=" + serving.Token}
	return cmd
}

func stock(ctx context.Context, t *testing.T, url, session, message string) *exec.Cmd {
	t.Helper()
	dir := os.Getenv("LANEWAY_CONFORMANCE")
	if dir == "" {
		t.Skip("needs the stock command line from npm: make conformance, then make model")
	}
	s := conformance.Stock{Dir: dir, Home: t.TempDir(), URL: url, Token: serving.Token}
	return s.Command(ctx, "agent", "--session-key", session, "--message", message)
}

var clients = map[string]command{"laneway": ours, "openclaw": stock}

// isDelta says whether a message brings text of an answer.
func isDelta(m conformance.Message) bool {
	return m.FromServer && strings.Contains(string(m.Data), `"stream":"assistant"`)
}

func TestRealModel_StreamedTurn(t *testing.T) {
	t.Parallel()
	p := setup(t)
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			p.Reset()
			var stderr strings.Builder
			cmd := client(t.Context(), t, p.URL, "agent:main:"+name, "Say hello in one short sentence.")
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil || strings.TrimSpace(string(out)) == "" {
				t.Fatalf("%v: stdout %q, stderr %q", err, out, stderr.String())
			}
			t.Logf("it said: %s", out)
			deltas := 0
			for _, m := range p.Messages() {
				if isDelta(m) {
					deltas++
				}
			}
			if deltas == 0 {
				t.Error("nothing was streamed")
			}
		})
	}
}

// A run that is interrupted while the model writes has stopped within a second, and
// both sides know it.
func TestRealModel_AbortInMidStream(t *testing.T) {
	t.Parallel()
	p := setup(t)
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			p.Reset()
			cmd := client(t.Context(), t, p.URL, "agent:main:abort-"+name, "Tell me a very long story about a fox, a bear and a lane, with twenty chapters.")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			if _, err := p.Await(t.Context(), isDelta); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			asked, err := p.Await(t.Context(), func(m conformance.Message) bool {
				return !m.FromServer && strings.Contains(string(m.Data), `"chat.abort"`)
			})
			if err != nil {
				t.Fatal(err)
			}
			answered, err := p.Await(t.Context(), func(m conformance.Message) bool {
				return m.FromServer && strings.Contains(string(m.Data), `"aborted":true`) && strings.Contains(string(m.Data), `"runIds"`)
			})
			if err != nil {
				t.Fatal(err)
			}
			if took := answered.At.Sub(asked.At); took > time.Second {
				t.Errorf("the abort took %s", took)
			}
			_ = <-ended // its code is judged
			if code := conformance.ShellCode(cmd.ProcessState); code != 130 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}
