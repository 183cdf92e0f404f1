package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"laneway/shared/clock"
	"laneway/shared/tool"
	"laneway/shared/workspace"
)

const (
	execTimeout = 30 * time.Minute
	// execDrain is how long output is still read when the command has ended but a
	// process that left its group holds the pipe.
	execDrain = 2 * time.Second
)

// Exec is the tool that runs a shell command as a child process, in the workspace
// and in a process group of its own. When it ends, for whatever reason, the whole
// group is killed: what a command starts in the background ends with it. The
// command runs with the rights of this process; who may use this tool is the
// operator's decision.
//
// The command sees only the variables of passedEnv and PassEnv, because the
// environment of this process holds keys; OPENCLAW_SHELL=exec tells it where it is.
type Exec struct {
	// Shell runs the command given after "-c" (on Windows "/C"); empty: bash if
	// there is one, else sh.
	Shell string
	// Timeout is used when a call names none; 0: 30 minutes.
	Timeout time.Duration
	// MaxTimeout bounds what a call may ask for; 0: no bound.
	MaxTimeout time.Duration
	// Environ is the environment to choose from, as os.Environ gives it. PassEnv
	// names variables that are passed on beside the common ones.
	Environ, PassEnv []string
	// Clock measures durations; nil: the machine's.
	Clock clock.Clock
}

type execArgs struct {
	Command        string            `json:"command"`
	Title          string            `json:"title"`
	Workdir        string            `json:"workdir"`
	Env            map[string]string `json:"env"`
	TimeoutSeconds *float64          `json:"timeoutSeconds"`
}

// passedEnv is what commands commonly need and what holds no secret.
var passedEnv = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR",
	"SystemRoot", "ComSpec", "PATHEXT", "USERPROFILE", "TEMP", "TMP", "WINDIR", // Windows
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Spec describes the tool.
func (Exec) Spec() tool.Spec {
	return tool.Spec{
		Name: "exec",
		Description: "Run a shell command in the workspace and return its output and exit code. It has no terminal and no input; " +
			"processes left in the background end with it.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"command":{"type":"string","minLength":1},` +
			`"title":{"type":"string","description":"What it does, in a few words"},` +
			`"workdir":{"type":"string","description":"Directory, relative to the workspace"},` +
			`"env":{"type":"object","additionalProperties":{"type":"string"}},` +
			`"timeoutSeconds":{"type":"number","minimum":0,"description":"1800 if not given; 0: none"}},"required":["command"]}`),
		Effect: tool.Unsafe,
	}
}

// Limit is the time limit that a call asks for.
func (e Exec) Limit(arguments json.RawMessage) time.Duration {
	var args execArgs
	if json.Unmarshal(arguments, &args) != nil || args.TimeoutSeconds == nil {
		return 0
	}
	if limit := e.timeout(args.TimeoutSeconds); limit > 0 {
		return limit
	}
	return -time.Millisecond
}

// Run runs the command to its end, its timeout, or the end of the context.
func (e Exec) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	return inWorkspace(call, func(args execArgs, dir *workspace.Dir) (tool.Result, error) {
		rel, err := workdir(dir, args.Workdir)
		if err != nil {
			return tool.Result{}, err
		}
		env, err := e.environment(args.Env)
		if err != nil {
			return tool.Result{}, err
		}
		out := newOutput(call.Update, e.clock())
		p := process{
			shell: e.Shell, command: args.Command, env: env,
			dir:     filepath.Join(dir.Path(), filepath.FromSlash(rel)),
			timeout: e.timeout(args.TimeoutSeconds), out: out,
		}
		outcome, err := p.run(ctx)
		details := map[string]any{"status": outcome.status, "cwd": rel, "durationMs": out.elapsed().Milliseconds()}
		if outcome.exitCode >= 0 {
			details["exitCode"] = outcome.exitCode
		}
		if outcome.status == statusTimeout {
			details["timedOut"] = true
		}
		if err != nil {
			return tool.Result{Details: details}, err
		}
		text := out.String()
		if outcome.note != "" {
			text = strings.TrimRight(text, "\n") + "\n\n" + outcome.note
		}
		r := tool.TextResult(cmp.Or(strings.TrimLeft(text, "\n"), tool.TextNothing))
		r.IsError = outcome.status != statusCompleted
		r.Details = details
		r.Meta = cmp.Or(args.Title, "command")
		return r, nil
	})
}

// timeout is how long a call may take; 0: as long as its context.
func (e Exec) timeout(asked *float64) time.Duration {
	limit := cmp.Or(e.Timeout, execTimeout)
	if asked != nil {
		limit = time.Duration(min(*asked, 1e9) * float64(time.Second))
	}
	if e.MaxTimeout > 0 && (limit == 0 || limit > e.MaxTimeout) {
		return e.MaxTimeout
	}
	return limit
}

func (e Exec) environment(extra map[string]string) ([]string, error) {
	var env []string
	for _, pair := range e.Environ {
		name, _, _ := strings.Cut(pair, "=")
		if slices.Contains(passedEnv, name) || slices.Contains(e.PassEnv, name) || strings.HasPrefix(name, "LC_") {
			env = append(env, pair)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if !envName.MatchString(name) || strings.ContainsRune(extra[name], 0) {
			return nil, fmt.Errorf("env: %q cannot be set", name)
		}
		env = append(env, name+"="+extra[name])
	}
	return append(env, "OPENCLAW_SHELL=exec"), nil
}

func workdir(dir *workspace.Dir, name string) (string, error) {
	rel, err := dir.Rel(name)
	if err != nil {
		return "", err
	}
	info, err := dir.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("workdir %s: not a directory", name)
	}
	return rel, nil
}

func (e Exec) clock() clock.Clock {
	if e.Clock == nil {
		return clock.System{}
	}
	return e.Clock
}
