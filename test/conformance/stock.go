package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// Stock is the stock command line, installed from npm.
type Stock struct {
	// Dir holds node_modules with openclaw and the reference client.
	Dir string
	// Home is a directory of the command's own: it reads and writes nothing else.
	Home string
	// URL and Token of the gateway to talk to.
	URL, Token string
}

// Run is one run of a command.
type Run struct {
	cmd         *exec.Cmd
	out, stderr lockedBuffer
	done        chan struct{}
	err         error
}

// Result of a run that has ended.
type Result struct {
	Code           int
	Stdout, Stderr string
}

func (r Result) String() string {
	return fmt.Sprintf("exit code %d\nstdout: %s\nstderr: %s", r.Code, r.Stdout, r.Stderr)
}

// node is the Node that PATH has first: scripts/node.sh puts it there.
const node = "node"

// Command is the stock command line with arguments.
func (s Stock) Command(ctx context.Context, args ...string) *exec.Cmd {
	return s.command(ctx, append([]string{filepath.Join(s.Dir, "node_modules", "openclaw", "openclaw.mjs")}, args...)...)
}

// Start runs the stock command line with arguments.
func (s Stock) Start(ctx context.Context, args ...string) (*Run, error) {
	return start(s.Command(ctx, args...))
}

// Script runs a script of ours that imports the reference client.
func (s Stock) Script(ctx context.Context, script string, args ...string) (*Run, error) {
	// An import is looked up from where the script is: it must be beside node_modules.
	b, err := os.ReadFile(script)
	if err != nil {
		return nil, err
	}
	copied := filepath.Join(s.Dir, filepath.Base(script))
	if err := os.WriteFile(copied, b, 0o600); err != nil {
		return nil, err
	}
	return start(s.command(ctx, append([]string{copied}, args...)...))
}

func (s Stock) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, node, args...)
	cmd.Dir = s.Home
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.Home, "OPENCLAW_STATE_DIR=" + filepath.Join(s.Home, "state"),
		"OPENCLAW_GATEWAY_URL=" + s.URL, "OPENCLAW_GATEWAY_TOKEN=" + s.Token, "NO_COLOR=1",
	}
	return cmd
}

func start(cmd *exec.Cmd) (*Run, error) {
	r := &Run{cmd: cmd, done: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.stderr
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(r.done)
		r.err = r.cmd.Wait()
	}()
	return r, nil
}

// Signal sends a signal to the command.
func (r *Run) Signal(s os.Signal) error { return r.cmd.Process.Signal(s) }

// Wait waits for the end of the command.
func (r *Run) Wait() (Result, error) {
	<-r.done
	res := Result{Stdout: r.out.String(), Stderr: r.stderr.String()}
	if exit, ok := errors.AsType[*exec.ExitError](r.err); ok {
		res.Code = ShellCode(exit.ProcessState)
		return res, nil
	}
	return res, r.err
}

// ShellCode is the exit code that a shell would show: of a process that a signal
// ended, or that passed the signal on to itself after it had cleaned up, 128 and the
// signal's number.
func ShellCode(s *os.ProcessState) int {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return s.ExitCode()
}

// lockedBuffer may be read while the command writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
