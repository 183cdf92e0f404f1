package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// The ends of a command, as details and clients name them.
const (
	statusCompleted = "completed"
	statusFailed    = "failed"
	statusTimeout   = "timeout"
	statusAborted   = "aborted"
)

// process is one command that is about to run.
type process struct {
	shell, command, dir string
	env                 []string
	timeout             time.Duration
	out                 *output
}

// outcome is how it ended. exitCode is -1 if there is none; note is a line for the
// model behind the output.
type outcome struct {
	status   string
	exitCode int
	note     string
}

var (
	errTimeout  = errors.New("command timed out")
	errNotBegun = errors.New("the command could not be started")
)

// run waits for the end of the command and of its group. It is an error if the
// command could not be started or the context ended.
func (p process) run(ctx context.Context) (outcome, error) {
	limited := ctx
	if p.timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, p.timeout, errTimeout)
		defer cancel()
	}
	shell, flag := shellOf(p.shell)
	cmd := exec.CommandContext(limited, shell, flag, p.command) //nolint:gosec // running what the model writes is what the tool is for
	cmd.Dir, cmd.Env = p.dir, p.env
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd) }
	if err := p.wait(cmd); err != nil {
		return outcome{statusFailed, -1, ""}, err
	}
	state := cmd.ProcessState
	switch {
	case state.Success():
		return outcome{status: statusCompleted}, nil
	case ctx.Err() != nil:
		return outcome{statusAborted, -1, ""}, ctx.Err()
	case errors.Is(context.Cause(limited), errTimeout):
		return outcome{statusTimeout, -1, fmt.Sprintf("[The command was stopped: it took longer than %s]", p.timeout)}, nil
	case state.Exited():
		return outcome{statusFailed, state.ExitCode(), fmt.Sprintf("[Exit code %d]", state.ExitCode())}, nil
	}
	return outcome{statusFailed, -1, fmt.Sprintf("[The command was ended by a %s]", state)}, nil
}

// wait starts the command, collects its output and returns when the command, its
// group and the collecting goroutine have ended. The pipe is ours and not that of
// exec.Cmd, whose Wait would wait for everybody who holds the pipe before the
// group could be killed.
func (p process) wait(cmd *exec.Cmd) error {
	r, w, err := os.Pipe()
	if err != nil {
		return errNotBegun
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	p.out.begin()
	err = cmd.Start()
	if closed := w.Close(); err != nil || closed != nil {
		return errNotBegun
	}
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		// Its end is EOF, or the deadline below; neither is the command's fault.
		_, _ = io.Copy(p.out, r)
	}()
	_ = cmd.Wait()     // how it ended is in ProcessState
	_ = killGroup(cmd) // nobody may be left, which is as good
	stopReading(r)     // a process that left the group may hold the pipe for ever
	<-collected
	return nil
}

// stopReading ends the reading of a pipe soon, even if it is held open.
func stopReading(r *os.File) {
	if r.SetReadDeadline(time.Now().Add(execDrain)) != nil {
		_ = r.Close()
	}
}
