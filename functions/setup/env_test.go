package setup

import (
	"maps"
	"strings"
	"testing"
	"time"

	"laneway/shared/queueing"
	"laneway/shared/session"
)

// whole is an environment as the stack gives it.
func whole() map[string]string {
	return map[string]string{
		"LANEWAY_STACK": "laneway", "LANEWAY_TABLE_PREFIX": "laneway-", "LANEWAY_QUEUE_MAIN_URL": "https://sqs.example/1/main.fifo",
		"LANEWAY_QUEUE_CRON_URL": "https://sqs.example/1/cron.fifo", "LANEWAY_QUEUE_SUBAGENT_URL": "https://sqs.example/1/subagent.fifo",
		"LANEWAY_TIMER_URL": "https://sqs.example/1/timers", "LANEWAY_BLOB_BUCKET": "laneway-blobs",
	}
}

func read(env map[string]string) (Env, error) { return Read(func(n string) string { return env[n] }) }

func TestRead_TheEnvironmentOfAStack(t *testing.T) {
	t.Parallel()
	e, err := read(whole())
	if err != nil || e.TablePrefix != "laneway-" || e.Timer != "https://sqs.example/1/timers" || e.Workspace != "/tmp/workspace" {
		t.Fatalf("%+v, %v", e, err)
	}
}

// TestRead_SettingsByChannel: in the words of queue.md; what is wrong is named with its
// variable and its section.
func TestRead_SettingsByChannel(t *testing.T) {
	t.Parallel()
	env := whole()
	env["LANEWAY_QUEUE"] = "steer cap:7; channel/slack: collect debounce:2s"
	env["LANEWAY_SESSION_RESET"] = "daily; type/group: idle:30; channel/slack: none"
	env["LANEWAY_INBOUND_DEBOUNCE"] = "300ms; channel/slack: 1s"
	e, err := read(env)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Queue.For("slack"); got != (queueing.Rules{Mode: queueing.Collect, Debounce: 2000, Cap: 7, Drop: queueing.DropSummarize}) {
		t.Errorf("the queue of a channel: %+v", got)
	}
	if e.Inbound.For("slack") != time.Second || e.Inbound.For("other") != 300*time.Millisecond {
		t.Errorf("texts wait %+v", e.Inbound)
	}
	for key, want := range map[string]string{"agent:main:main": "daily@4", "agent:main:x:group:g": "idle:30", "agent:main:slack:group:g": "none"} {
		if got := e.Reset.For(session.PlaceOf(key)).String(); got != want {
			t.Errorf("%s starts over %s, want %s", key, got, want)
		}
	}
	for name, value := range map[string]string{"LANEWAY_QUEUE": "steer; channel/slack: cap:5", "LANEWAY_SESSION_RESET": "daily; channel/slack: weekly", "LANEWAY_INBOUND_DEBOUNCE": "0; channel/slack: soon"} {
		env := whole()
		env[name] = value
		if _, err := read(env); err == nil || !strings.Contains(err.Error(), name+": ") || !strings.Contains(err.Error(), "channel/slack: ") {
			t.Errorf("%s=%q: %v", name, value, err)
		}
	}
}

func TestRead_SaysEverythingThatIsMissingAtOnce(t *testing.T) {
	t.Parallel()
	_, err := read(nil)
	if err == nil {
		t.Fatal("an empty environment is taken")
	}
	for name := range whole() {
		if name != "LANEWAY_STACK" && !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}

func TestRead_NamesTheVariableThatIsWrong(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]string{
		"LANEWAY_TABLE_PREFIX":          {""},
		"LANEWAY_BLOB_BUCKET":           {""},
		"LANEWAY_QUEUE_MAIN_URL":        {"", "main.fifo", "ftp://x/y", "https://"},
		"LANEWAY_QUEUE_CRON_URL":        {"", "://"},
		"LANEWAY_QUEUE_SUBAGENT_URL":    {"", "sub"},
		"LANEWAY_TIMER_URL":             {"", "timers"},
		"LANEWAY_LOG_LEVEL":             {"loud"},
		"LANEWAY_TIMEOUT_SECONDS":       {"0", "900s", "-1"},
		"LANEWAY_STUCK_WARN_MS":         {"2min", "-5000"},
		"LANEWAY_STUCK_ABORT_MS":        {"6min", "-5000"},
		"OPENCLAW_FALLBACK_SKIP_TTL_MS": {"10s", "-1"},
		"AWS_ENDPOINT_URL":              {"localhost:4566", "127.0.0.1"},
	} {
		for _, v := range values {
			env := maps.Clone(whole())
			env[name] = v
			_, err := read(env)
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s=%q: %v", name, v, err)
			}
			if err != nil && v != "" && strings.Contains(err.Error(), v) && name != "LANEWAY_LOG_LEVEL" {
				t.Errorf("%s: the value is shown: %v", name, err)
			}
		}
	}
}
