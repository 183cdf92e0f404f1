// Package serving runs the command line as a user does: built once, started as a
// process, ended by a signal.
//
// Guarantees: a process that a test started has ended, and has been waited for, when
// the test ends; it sees no settings of the machine but PATH, and writes nowhere but
// in the directory that it was given.
package serving

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Token is what a started gateway lets in.
const Token = "token-of-the-test"

var build struct {
	once sync.Once
	path string
	err  error
}

// Binary builds the command line once per test process, in a directory that outlives
// the tests of it, and gives its path. LANEWAY_BINARY names one that is there.
func Binary(t *testing.T) string {
	t.Helper()
	build.once.Do(func() {
		if build.path = os.Getenv("LANEWAY_BINARY"); build.path != "" {
			return
		}
		var dir string
		if dir, build.err = os.MkdirTemp("", "laneway-test-"); build.err != nil { //nolint:usetesting // it outlives the test that comes first
			return
		}
		build.path = filepath.Join(dir, "laneway")
		if runtime.GOOS == "windows" {
			build.path += ".exe"
		}
		out, err := exec.Command("go", "build", "-o", build.path, "laneway/cmd/laneway").CombinedOutput()
		if err != nil {
			build.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if build.err != nil {
		t.Fatalf("build: %v", build.err)
	}
	return build.path
}

// Cleanup removes what Binary built; TestMain calls it after the tests.
func Cleanup() {
	if build.path != "" && os.Getenv("LANEWAY_BINARY") == "" {
		_ = os.RemoveAll(filepath.Dir(build.path)) // a temporary directory
	}
}

// Options of a gateway.
type Options struct {
	Data string   // data directory; empty: a fresh one
	Args []string // more arguments of serve
	Env  []string // more environment, NAME=value
}

// Gateway is a running `laneway serve`.
type Gateway struct {
	URL  string
	Data string

	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and was waited for
	err  error         // of its end, after done
	log  *tail
}

// Start starts a gateway on a free port and returns when it listens. It is ended
// with the test.
func Start(t *testing.T, o Options) *Gateway {
	t.Helper()
	g, err := start(t.Context(), Binary(t), o, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Stop(); err != nil {
			t.Errorf("serve: %v", err)
		}
		if t.Failed() {
			t.Logf("serve said:\n%s", g.Log())
		}
	})
	return g
}

func start(ctx context.Context, binary string, o Options, dir string) (*Gateway, error) {
	if o.Data == "" {
		o.Data = filepath.Join(dir, "data")
	}
	g := &Gateway{Data: o.Data, done: make(chan struct{}), log: &tail{}}
	g.cmd = exec.Command(binary, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", o.Data}, o.Args...)...)
	g.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "OPENCLAW_GATEWAY_TOKEN=" + Token}, o.Env...)
	stderr, err := g.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}
	listening := make(chan string, 1)
	go func() {
		defer close(g.done)
		g.read(stderr, listening)
		g.err = g.cmd.Wait()
	}()
	select {
	case g.URL = <-listening:
		return g, nil
	case <-g.done:
		return nil, fmt.Errorf("serve ended before it listened: %w\n%s", g.err, g.Log())
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), g.Kill())
	}
}

// read keeps what the process says and finds its address in it.
func (g *Gateway) read(r io.Reader, listening chan<- string) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		g.log.add(lines.Text())
		if _, url, ok := strings.Cut(lines.Text(), "listening on "); ok {
			select {
			case listening <- strings.TrimSpace(url):
			default:
			}
		}
	}
	_, _ = io.Copy(io.Discard, r) // a line that is too long must not block the process
}

// PID is the id of the process.
func (g *Gateway) PID() int { return g.cmd.Process.Pid }

// Kill ends it as a crash does, and waits for it.
func (g *Gateway) Kill() error {
	err := g.cmd.Process.Kill()
	<-g.done
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Stop ends it as a service manager does, and waits for it. A process that has
// ended, or was killed, is no error; one that ended by itself with a failure is.
func (g *Gateway) Stop() error {
	select {
	case <-g.done:
		return g.failure()
	default:
	}
	if runtime.GOOS == "windows" {
		return g.Kill()
	}
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-g.done
	return g.failure()
}

func (g *Gateway) failure() error {
	exit, ok := errors.AsType[*exec.ExitError](g.err)
	if ok && !exit.Exited() { // by a signal, which was ours
		return nil
	}
	return g.err
}

// Log is the end of what the process said.
func (g *Gateway) Log() string { return g.log.String() }

// tail keeps the last lines of a text.
type tail struct {
	mu    sync.Mutex
	lines []string
}

const tailLines = 200

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	if len(t.lines) > tailLines {
		t.lines = t.lines[len(t.lines)-tailLines:]
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}

// FreePort is a port of this machine that was free a moment ago: for a gateway that
// comes back under the same address.
func FreePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().(*net.TCPAddr).Port
}
