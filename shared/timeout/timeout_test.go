package timeout

import (
	"strings"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/watch"
)

const s = time.Second

// TestRuntime51_Budget: each row of "Agent runtime".
func TestRuntime51_Budget(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name       string
		inputMs    int64
		configured time.Duration
		want       Bound
	}{
		{"nobody says anything: 48 h", 0, 0, Bound{For: 48 * time.Hour, Why: "the default of runs"}},
		{"configured", 0, 600 * s, Bound{For: 600 * s, Why: "it is configured for all runs"}},
		{"configured as none", 0, -1, Bound{Why: "runs have no limit by configuration"}},
		{"the caller's", 5000, 600 * s, Bound{For: 5 * s, Why: "its caller asked for it"}},
		{"the caller's 0: none", -1, 600 * s, Bound{Why: "its caller asked for no limit"}},
	} {
		if got := Budget(row.inputMs, row.configured); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
}

// TestRuntime51_TheRemainderIsCarried: the budget counts from the first attempt,
// approvals pause it, progress does not renew it.
func TestRuntime51_TheRemainderIsCarried(t *testing.T) {
	t.Parallel()
	began := time.Unix(1000, 0)
	b := Budget(60_000, 0)
	for _, row := range []struct {
		name   string
		paused time.Duration
		at     time.Duration
		left   time.Duration
	}{
		{"first attempt", 0, 10 * s, 50 * s},
		{"a later attempt goes on with what is left", 0, 45 * s, 15 * s},
		{"approvals pause it", 30 * s, 45 * s, 45 * s},
		{"over", 0, 61 * s, 0},
	} {
		left, limited := b.Left(began, row.paused, began.Add(row.at))
		if !limited || left != row.left {
			t.Errorf("%s: %s left, want %s", row.name, left, row.left)
		}
	}
	if _, limited := Budget(-1, 0).Left(began, 0, began.Add(1000*time.Hour)); limited {
		t.Error("a run without a limit has one")
	}
	if !b.End(time.Time{}, 0).IsZero() {
		t.Error("a run that has not begun ends")
	}
}

// TestRuntime52_Rows: each row of the decision table and of "First event", with the
// reason that it gives.
func TestRuntime52_Rows(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		w    watch.Windows
		want time.Duration
	}{
		{"row 1: the provider's timeoutSeconds", watch.Windows{ProviderTimeout: 400 * s, Endpoint: model.Cloud}, 400 * s},
		{"row 1: the provider's timeoutSeconds, cut to the run's own limit", watch.Windows{ProviderTimeout: 400 * s, RunTimeout: 100 * s, AgentTimeout: s, Endpoint: model.Cloud}, 100 * s},
		{"row 1: the provider's timeoutSeconds, cut to the agent's limit", watch.Windows{ProviderTimeout: 400 * s, AgentTimeout: 200 * s, Endpoint: model.Cloud}, 200 * s},
		{"row 2: the run's own limit, scheduled", watch.Windows{RunTimeout: 600 * s, Cron: true, Endpoint: model.SelfHosted}, 600 * s},
		{"row 3: the run's own limit, scheduled", watch.Windows{RunTimeout: 30 * s, Cron: true, Endpoint: model.Cloud}, 30 * s},
		{"row 4: the run's own limit", watch.Windows{RunTimeout: 600 * s, Endpoint: model.Local}, 600 * s},
		{"row 4: the run's own limit", watch.Windows{RunTimeout: 600 * s, Endpoint: model.SelfHosted}, 300 * s},
		{"row 4: the run's own limit", watch.Windows{RunTimeout: 600 * s, Endpoint: model.Cloud}, 120 * s},
		{"row 5: the agent's limit", watch.Windows{AgentTimeout: 600 * s, Endpoint: model.Cloud}, 120 * s},
		{"row 6: a local endpoint may be silent", watch.Windows{Endpoint: model.Local}, 70 * s}, // what is left
		{"row 7: the class of the endpoint, self-hosted", watch.Windows{Endpoint: model.SelfHosted}, 300 * s},
		{"row 8: the class of the endpoint, cloud", watch.Windows{Endpoint: model.Cloud}, 120 * s},
		{"the first sign of life", watch.Windows{RunTimeout: 600 * s, Cron: true, Endpoint: model.Cloud}, 120 * s}, // later ones: row 3
	} {
		got, rule := Silence(row.w, 70*s)
		if why := WhySilence(rule); got != row.want || !strings.HasPrefix(why, row.name) || len(rule) > 2 {
			t.Errorf("%s: %s by %q, %s", row.name, got, rule, why)
		}
	}
	if got, rule := Silence(watch.Windows{Endpoint: model.Local}, 0); got >= 0 || rule != "" || WhySilence(rule) != "" {
		t.Errorf("nothing bounds it: %s by %q", got, rule)
	}
	if got := WhySilence("?"); got != "" {
		t.Errorf("a code that nobody knows: %q", got)
	}
}

// TestRuntime54_CronTurn: 60 minutes, what the job says, 0 none.
func TestRuntime54_CronTurn(t *testing.T) {
	t.Parallel()
	of := func(f float64) *float64 { return &f }
	for _, row := range []struct {
		seconds *float64
		want    int64
	}{{nil, 3_600_000}, {of(30), 30_000}, {of(0.0001), 1}, {of(0), -1}, {of(1e9), -1}} {
		if got := CronMs(row.seconds); got != row.want {
			t.Errorf("%v: %d, want %d", row.seconds, got, row.want)
		}
	}
}

// TestRuntime54_PreExecutionWatchdog: max(1 s, min(60 s, timeout/2)).
func TestRuntime54_PreExecutionWatchdog(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		limit time.Duration
		want  time.Duration
	}{
		{"an hour: 60 s", time.Hour, 60 * s},
		{"120 s: half of it is as much", 120 * s, 60 * s},
		{"half of the run's limit", 40 * s, 20 * s},
		{"at least a second", 1500 * time.Millisecond, s},
		{"no limit", 0, 60 * s},
	} {
		if got := CronBeforeModel(Bound{For: row.limit}); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}
