//go:build unix

package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"laneway/shared/tool"
	"laneway/shared/tool/builtin"
)

// shell is a workspace with the tools that change things.
func shell(t *testing.T, e builtin.Exec) bench {
	t.Helper()
	r, err := tool.NewRegistry(e, builtin.Write{})
	if err != nil {
		t.Fatal(err)
	}
	return bench{dir: t.TempDir(), tools: r}
}

func TestExecRunsInTheWorkspace(t *testing.T) {
	t.Parallel()
	b := shell(t, builtin.Exec{})
	b.file(t, "sub/x.txt", "")
	r := b.call(t.Context(), "exec", map[string]any{"command": "ls; echo err >&2; echo shell=$OPENCLAW_SHELL", "workdir": "sub", "title": "list"})
	if r.IsError || text(r) != "x.txt\nerr\nshell=exec\n" || r.Meta != "list" || r.Details["status"] != "completed" || r.Details["exitCode"] != 0 {
		t.Errorf("%+v", r)
	}
}

func TestExecTellsTheExitCode(t *testing.T) {
	t.Parallel()
	r := shell(t, builtin.Exec{}).call(t.Context(), "exec", map[string]any{"command": "echo out; exit 3"})
	if !r.IsError || text(r) != "out\n\n[Exit code 3]" || r.Details["exitCode"] != 3 || r.Details["status"] != "failed" {
		t.Errorf("%+v", r)
	}
	r = shell(t, builtin.Exec{}).call(t.Context(), "exec", map[string]any{"command": "kill -TERM $$"})
	if !r.IsError || !strings.Contains(text(r), "signal: terminated") {
		t.Errorf("%+v", r)
	}
	r = shell(t, builtin.Exec{}).call(t.Context(), "exec", map[string]any{"command": "true"})
	if r.IsError || text(r) != tool.TextNothing {
		t.Errorf("%+v", r)
	}
}

func TestExecPassesNoSecretsOn(t *testing.T) {
	t.Parallel()
	b := shell(t, builtin.Exec{
		Environ: append(os.Environ(), "OPENAI_API_KEY=not-for-commands", "LANEWAY_TEST_PASSED=passed"),
		PassEnv: []string{"LANEWAY_TEST_PASSED"},
	})
	r := b.call(t.Context(), "exec", map[string]any{"command": "env", "env": map[string]any{"GIVEN": "by the model"}})
	if strings.Contains(text(r), "not-for-commands") || !strings.Contains(text(r), "LANEWAY_TEST_PASSED=passed") || !strings.Contains(text(r), "GIVEN=by the model") {
		t.Errorf("%s", text(r))
	}
	if r := b.call(t.Context(), "exec", map[string]any{"command": "env", "env": map[string]any{"A=B": "x"}}); !r.IsError {
		t.Errorf("%s", text(r))
	}
}

func TestExecWorksInsideTheWorkspaceOnly(t *testing.T) {
	t.Parallel()
	b := shell(t, builtin.Exec{})
	if err := os.Symlink("/", filepath.Join(b.dir, "root")); err != nil {
		t.Fatal(err)
	}
	b.file(t, "f", "")
	for _, dir := range []string{"..", "/", "root", "f", "none"} {
		if r := b.call(t.Context(), "exec", map[string]any{"command": "pwd", "workdir": dir}); !r.IsError {
			t.Errorf("%s: ran in %s", dir, text(r))
		}
	}
}

func TestExecStopsAtItsTimeoutWithAllItStarted(t *testing.T) {
	t.Parallel()
	b := shell(t, builtin.Exec{})
	r := b.call(t.Context(), "exec", map[string]any{"command": "sleep 600 & echo $!; wait", "timeoutSeconds": 0.3})
	if !r.IsError || r.Details["status"] != "timeout" || r.Details["timedOut"] != true || !strings.Contains(text(r), "took longer than 300ms") {
		t.Errorf("%+v", r)
	}
	pid, _, _ := strings.Cut(text(r), "\n")
	gone(t, pid)
}

func TestExecLeavesNothingInTheBackground(t *testing.T) {
	t.Parallel()
	b := shell(t, builtin.Exec{})
	r := b.call(t.Context(), "exec", map[string]any{"command": "sleep 600 & echo $!"})
	if r.IsError {
		t.Fatalf("%+v", r)
	}
	gone(t, strings.TrimSpace(text(r)))
}

//nolint:paralleltest // it counts the goroutines of the process
func TestExecEndsWithItsContext(t *testing.T) {
	b := shell(t, builtin.Exec{})
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	var pid string
	raw, err := json.Marshal(map[string]any{"command": "sleep 600 & echo $!; wait"})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	r := tool.Execute(ctx, b.tools, tool.Call{
		Name: "exec", Arguments: raw, Scope: tool.Scope{Workspace: b.dir},
		Update: func(r tool.Result) { once.Do(func() { pid = strings.TrimSpace(text(r)); cancel() }) },
	})
	if !r.IsError || text(r) != tool.TextAborted || r.Details["status"] != "aborted" {
		t.Errorf("%+v", r)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	gone(t, pid)
}

func TestExecKeepsBothEndsOfALongOutput(t *testing.T) {
	t.Parallel()
	b := shell(t, builtin.Exec{})
	r := b.call(t.Context(), "exec", map[string]any{"command": "echo START; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo END"})
	if n := len(text(r)); n < 150_000 || n > 200_100 {
		t.Errorf("%d bytes", n)
	}
	if !strings.HasPrefix(text(r), "START\n") || !strings.HasSuffix(text(r), "END\n") || !strings.Contains(text(r), "bytes of output omitted") {
		t.Error("an end is missing")
	}
}

func TestWriteIsIdempotent(t *testing.T) {
	t.Parallel()
	b := shell(t, builtin.Exec{})
	args := map[string]any{"path": "a/b.txt", "content": "one\ntwo\n"}
	r := b.call(t.Context(), "write", args)
	if r.IsError || r.Details["created"] != true || r.Details["changed"] != true {
		t.Errorf("%+v", r)
	}
	r = b.call(t.Context(), "write", args)
	if r.IsError || r.Details["created"] != false || r.Details["changed"] != false || !strings.HasPrefix(text(r), "Unchanged") {
		t.Errorf("%+v", r)
	}
	args["content"] = "one\nTWO\n"
	r = b.call(t.Context(), "write", args)
	if r.IsError || r.Details["firstChangedLine"] != 2 {
		t.Errorf("%+v", r)
	}
	f, err := os.Open(filepath.Join(b.dir, "a", "b.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || string(got) != "one\nTWO\n" {
		t.Errorf("%q, %v", got, err)
	}
	args["path"] = "../x"
	if r := b.call(t.Context(), "write", args); !r.IsError || !strings.Contains(text(r), "outside") {
		t.Errorf("%+v", r)
	}
}

func TestEffectsOfToolsThatChangeThings(t *testing.T) {
	t.Parallel()
	r := shell(t, builtin.Exec{}).tools
	if r.EffectOf("exec") != tool.Unsafe || r.EffectOf("write") != tool.Idempotent {
		t.Error("a crash would repeat the wrong ones")
	}
}

// gone waits for the end of a process that was killed: the kernel needs a moment,
// and an orphan stays a zombie until its new parent looks.
func gone(t *testing.T, text string) {
	t.Helper()
	pid, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(deadline) {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid) {
			return
		}
		<-tick.C
	}
	t.Errorf("process %d lives on", pid)
}

func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// TestExecSaysHowLongACallMayTake: only what the call itself asks for counts.
func TestExecSaysHowLongACallMayTake(t *testing.T) {
	t.Parallel()
	r := shell(t, builtin.Exec{MaxTimeout: time.Hour}).tools
	forever := shell(t, builtin.Exec{}).tools
	for args, want := range map[string]time.Duration{
		`{"command":"make"}`: 0, `{"command":"make","timeoutSeconds":2400}`: 40 * time.Minute,
		`{"command":"make","timeoutSeconds":7200}`: time.Hour, `{"command":"make","timeoutSeconds":0}`: time.Hour, `no`: 0,
	} {
		if got := r.LimitOf("exec", json.RawMessage(args)); got != want {
			t.Errorf("%s: %v, want %v", args, got, want)
		}
	}
	if got := forever.LimitOf("exec", json.RawMessage(`{"command":"make","timeoutSeconds":0}`)); got >= 0 {
		t.Errorf("for ever: %v", got)
	}
	if got := r.LimitOf("write", nil) + r.LimitOf("unknown", nil); got != 0 {
		t.Errorf("others: %v", got)
	}
}
