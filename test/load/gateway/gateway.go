// Package gateway starts the gateways that are measured, each as a process of its own
// with a data directory of its own, and ends them.
//
// Guarantees: a process sees no settings of the machine but PATH and writes nowhere but
// in its directory; Stop has ended it and all that it started, by their ids, and
// nothing else; it listens on 127.0.0.1 only.
package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"laneway/test/load/caller"
)

// Token is what the gateways let in.
const Token = "token-of-the-measurement"

// Note is a small file in the workspace of each gateway, and what is in it.
const (
	Note     = "note.txt"
	NoteText = "Nothing is lost.\n"
)

// Gateway is a running gateway.
type Gateway struct {
	Name    string
	URL     string
	Started time.Time // just before the process was

	cmd  *exec.Cmd
	log  string        // file with what it says
	done chan struct{} // closed when it has ended and was waited for
}

// Laneway starts `laneway serve` of a binary in a fresh directory, with the provider
// at a base URL.
func Laneway(binary, dir, provider, model string) (*Gateway, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	workspace, err := makeWorkspace(dir)
	if err != nil {
		return nil, err
	}
	address := "127.0.0.1:" + strconv.Itoa(port)
	cmd := exec.Command(binary, "serve", "--listen", address, "--data", filepath.Join(dir, "data"), "--workspace", workspace)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "OPENCLAW_GATEWAY_TOKEN=" + Token,
		"OPENAI_BASE_URL=" + provider, "OPENAI_API_KEY=mock", "LANEWAY_MODEL=openai/" + model,
	}
	return start("laneway", address, cmd, dir)
}

// Stock starts the stock gateway that was installed in a directory of node_modules.
func Stock(modules, node, dir, provider, model string) (*Gateway, error) {
	node, err := filepath.Abs(node)
	if err != nil {
		return nil, err
	}
	if modules, err = filepath.Abs(modules); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	workspace, err := makeWorkspace(dir)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "openclaw.json")
	b, err := json.Marshal(stockConfig(port, workspace, provider, model, filepath.Join(dir, "gateway.log")))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, b, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(node, filepath.Join(modules, "openclaw", "openclaw.mjs"), "gateway", "run")
	cmd.Env = []string{
		"PATH=" + filepath.Dir(node) + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + dir,
		"OPENCLAW_STATE_DIR=" + filepath.Join(dir, "state"), "OPENCLAW_CONFIG_PATH=" + config, "OPENCLAW_GATEWAY_TOKEN=" + Token,
	}
	return start("stock", "127.0.0.1:"+strconv.Itoa(port), cmd, dir)
}

// stockConfig is the least that the stock gateway needs to talk to the provider.
func stockConfig(port int, workspace, provider, model, log string) any {
	type m = map[string]any
	return m{
		"gateway": m{"mode": "local", "bind": "loopback", "port": port, "auth": m{"mode": "token", "token": Token}},
		"agents":  m{"defaults": m{"workspace": workspace, "model": m{"primary": "mock/" + model}}},
		"models": m{"mode": "merge", "providers": m{"mock": m{
			"baseUrl": provider, "apiKey": "mock", "api": "openai-completions",
			"models": []any{m{
				"id": model, "name": "Mock", "reasoning": false, "input": []string{"text"}, "contextWindow": 1_000_000, "maxTokens": 8192,
				"cost": m{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
			}},
		}}},
		"logging": m{"file": log},
	}
}

func makeWorkspace(dir string) (string, error) {
	workspace := filepath.Join(dir, "workspace")
	if err := os.MkdirAll(workspace, 0o700); err != nil {
		return "", err
	}
	return workspace, os.WriteFile(filepath.Join(workspace, Note), []byte(NoteText), 0o600)
}

// freePort is a port that was free a moment ago.
func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

func start(name, address string, cmd *exec.Cmd, dir string) (*Gateway, error) {
	g := &Gateway{Name: name, URL: "ws://" + address + "/", cmd: cmd, log: filepath.Join(dir, "output.log"), done: make(chan struct{})}
	out, err := os.Create(g.log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	g.Started = time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(g.done)
		_ = cmd.Wait() // who asks sees the connection end
	}()
	return g, nil
}

// Connect tries until the gateway says hello.
func (g *Gateway) Connect(ctx context.Context) (*caller.Client, error) {
	for {
		c, err := g.try(ctx)
		if err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s said no hello: %w\n%s", g.Name, err, g.said())
		case <-g.done:
			return nil, fmt.Errorf("%s ended before its hello:\n%s", g.Name, g.said())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func (g *Gateway) try(ctx context.Context) (*caller.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return caller.Dial(ctx, g.URL, Token)
}

// said is the end of what the process wrote.
func (g *Gateway) said() string {
	b, err := os.ReadFile(g.log)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-2000):])
}

// grace is how long a gateway has to end by itself.
const grace = 10 * time.Second

// Stop ends the process and its children, and waits for it.
func (g *Gateway) Stop() {
	children := tree(g.cmd.Process.Pid)
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		_ = g.cmd.Process.Kill()
	}
	select {
	case <-g.done:
	case <-time.After(grace):
		_ = g.cmd.Process.Kill()
		<-g.done
	}
	for _, p := range children[1:] {
		p.kill()
	}
}
