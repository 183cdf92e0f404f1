package loop_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/retry"
	"laneway/shared/run"
	"laneway/shared/transcript"
	"laneway/shared/wiring"
)

// failing fails as e says.
func failing(e model.Error) answerFunc {
	return func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
		e := e
		e.Message = "no"
		yield(model.Part{}, &e)
	}
}

// TestRetry_7_2_Rows: how often one model is asked, when another one is, and how long is
// waited between.
func TestRetry_7_2_Rows(t *testing.T) {
	t.Parallel()
	limited, broken := failing(model.Error{Class: model.RateLimit}), failing(model.Error{Class: model.ServerError, Status: 500})
	times := func(n int, f answerFunc, then ...answerFunc) []answerFunc {
		return append(slices.Repeat([]answerFunc{f}, n), then...)
	}
	for _, row := range []struct {
		name   string
		models []string
		first  []answerFunc
		cfg    retry.Config
		calls  map[string]int
		kind   run.OutcomeKind
		least  time.Duration
		most   time.Duration
	}{
		{"rate limit: the tenth attempt answers", []string{"a/one"}, times(9, limited, say("ok")), retry.Config{}, map[string]int{"a/one": 10}, run.OK, 0, 0},
		{"rate limit: ten attempts, then the next credential once, then the fallback", []string{"a/one p q r", "b/two"}, times(20, limited), retry.Config{}, map[string]int{"a/one p": 10, "a/one q": 1, "b/two": 1}, run.OK, 0, 0},
		{"server error: eight retries", []string{"a/one"}, times(20, broken), retry.Config{Base: time.Second / 10}, map[string]int{"a/one": 9}, run.Failed, 0, 0},
		{"server error: none behind 90 s", []string{"a/one"}, times(20, failing(model.Error{Class: model.ServerError, RetryAfter: 31 * time.Second})), retry.Config{}, map[string]int{"a/one": 4}, run.Failed, 93 * time.Second, 0},
		{"Retry-After is a floor, even above 30 s", []string{"a/one"}, []answerFunc{failing(model.Error{Class: model.ServerError, Status: 500, RetryAfter: 45 * time.Second}), say("ok")}, retry.Config{}, map[string]int{"a/one": 2}, run.OK, 45 * time.Second, 50 * time.Second},
		{"Retry-After above maxRetryDelayMs with a fallback", []string{"a/one", "b/two"}, times(20, failing(model.Error{Class: model.RateLimit, RetryAfter: 120 * time.Second})), retry.Config{}, map[string]int{"a/one": 1, "b/two": 1}, run.OK, 0, 5 * time.Second},
		{"Retry-After above maxRetryDelayMs without", []string{"a/one"}, []answerFunc{failing(model.Error{Class: model.RateLimit, RetryAfter: 120 * time.Second}), say("ok")}, retry.Config{}, map[string]int{"a/one": 2}, run.OK, 120 * time.Second, 0},
		{"maxRetryDelayMs 0: no cap", []string{"a/one", "b/two"}, []answerFunc{failing(model.Error{Class: model.RateLimit, RetryAfter: 120 * time.Second}), say("ok")}, retry.Config{MaxDelay: -1}, map[string]int{"a/one": 2}, run.OK, 120 * time.Second, 0},
		{"a long usage window goes straight to the fallback", []string{"a/one", "b/two"}, times(20, failing(model.Error{Class: model.RateLimit, LongWindow: true})), retry.Config{}, map[string]int{"a/one": 1, "b/two": 1}, run.OK, 0, 5 * time.Second},
		{"maxRetries 2", []string{"a/one"}, times(20, broken), retry.Config{MaxRetries: 2}, map[string]int{"a/one": 3}, run.Failed, 0, 0},
		{"maxRetries 0: none", []string{"a/one"}, times(20, broken), retry.Config{MaxRetries: -1}, map[string]int{"a/one": 1}, run.Failed, 0, 0},
		{"maxRetries 20: a rate limit ends at ten attempts", []string{"a/one"}, times(40, limited), retry.Config{MaxRetries: 20, Base: time.Second / 10}, map[string]int{"a/one": 10}, run.Failed, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := newModels(t, row.models...)
			if strings.Contains(row.models[0], " ") {
				for _, p := range strings.Fields(row.models[0])[1:] {
					m.on(t, "a/one "+p, row.first...)
				}
			} else {
				m.on(t, "a/one", row.first...)
			}
			m.on(t, "b/two", say("two"))
			w.accept(w.connect(), "r1", "hi")
			began := w.clock.Now()
			w.process(nil, chained(m), func(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) {
				rc.Retry = row.cfg
				rc.Retry.Rand = func() float64 { return 0.5 }
			}).serveSlowly()
			took := w.clock.Now().Sub(began)
			got := map[string]int{}
			for call := range strings.SplitSeq(m.asked(), ", ") {
				got[call]++
			}
			if fmt.Sprint(got) != fmt.Sprint(row.calls) {
				t.Errorf("asked %v, want %v", got, row.calls)
			}
			st := w.status("r1")
			if st.Outcome.Kind != row.kind {
				t.Errorf("%+v", st.Outcome)
			}
			if took < row.least || row.most > 0 && took > row.most {
				t.Errorf("it took %s", took)
			}
			if rows := w.rows(); row.kind == run.OK && len(rows) != 2 {
				t.Errorf("recovered errors are kept: %+v", rows)
			}
		})
	}
}

// TestRetry_7_2_ErrorsThatAreKept: recovered ones are not, a terminal failure leaves one
// row with what was shown; the next model reads only that a reply was not finished.
func TestRetry_7_2_ErrorsThatAreKept(t *testing.T) {
	t.Parallel()
	after := func(text string, e model.Error) answerFunc {
		return func(ctx context.Context, r model.Request, yield func(model.Part, error) bool) {
			if yield(model.Part{Text: text}, nil) {
				failing(e)(ctx, r, yield)
			}
		}
	}
	for _, row := range []struct {
		name string
		one  answerFunc
		two  answerFunc
		kept string // the text of the error's row; "-": there is none
	}{
		{"recovered by a fallback", after("half", model.Error{Class: model.ServerError, Status: 500}), say("whole"), "-"},
		{"nobody answers", fail(model.Auth), fail(model.Billing), ""},
		{"nobody answers, and something was shown", fail(model.Auth), after("half", model.Error{Class: model.Billing}), "half"},
		{"the request is wrong", fail(model.Format), say("never"), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := newModels(t, "a/one", "b/two")
			m.on(t, "a/one", row.one)
			m.on(t, "b/two", row.two)
			c := w.connect()
			w.accept(c, "r1", "hi")
			w.process(nil, chained(m)).serve()
			st, rows := w.status("r1"), w.rows()
			if len(rows) != 2 {
				t.Fatalf("rows %+v", rows)
			}
			e := rows[1]
			if row.kept == "-" {
				if st.Outcome.Kind != run.OK || e.Error != "" || e.Text() != "whole" {
					t.Errorf("%+v, kept %+v", st.Outcome, e)
				}
				return
			}
			if st.Outcome.Kind != run.Failed || e.Error != st.Outcome.Error || e.Error == "" || e.StopReason != "error" || e.Key != "r1:assistant" || e.Text() != row.kept {
				t.Errorf("%+v, kept %+v", st.Outcome, e)
			}
			var asked []model.Message
			m.fake(t, "a/one").by(func(r model.Request) answerFunc { asked = r.Messages; return say("next") })
			w.clock.Advance(time.Hour)
			w.accept(c, "r2", "again")
			w.process(nil, chained(m)).serve()
			if len(asked) != 3 || asked[1].Content[0].Text != transcript.AbortedMarker {
				t.Errorf("the next request has %+v", asked)
			}
		})
	}
}

// serveSlowly lets time go by while an invocation waits between two calls, and delivers
// what is due until nothing is left.
func (p *process) serveSlowly() {
	p.w.t.Helper()
	w := p.w
	for limit := w.clock.Now().Add(time.Hour); w.clock.Now().Before(limit); {
		due := w.box.take()
		for _, l := range due {
			w.ends(p.begin(func() error { return p.deliver(l) }), 0)
		}
		if m := w.meta(); m.Exists() && !m.Busy && len(due) == 0 {
			return
		}
		if len(due) == 0 {
			w.clock.Advance(time.Second)
		}
	}
	w.t.Fatal("the session stays busy")
}

// TestFailover_7_5_EndsOfTheRun: a run that is over asks nobody else, whatever the chain
// has.
func TestFailover_7_5_EndsOfTheRun(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(*run.Status)
		abort  bool
		kind   run.OutcomeKind
	}{
		{"user abort", func(*run.Status) {}, true, run.Aborted},
		{"terminal run timeout", func(st *run.Status) { st.Input.TimeoutMs = 20_000 }, false, run.Timeout},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := newModels(t, "a/one p q", "b/two")
			m.on(t, "a/one p", hold(nil, "half", ""))
			m.on(t, "a/one q", say("q"))
			m.on(t, "b/two", say("two"))
			w.accept(w.connect(), "r1", "hi", row.change)
			p := w.process(nil, chained(m))
			i := p.start()
			<-m.fakes["a/one p"].asked
			if row.abort {
				w.stop("r1")
			}
			w.ends(i, 0)
			if st := w.status("r1"); st.Outcome.Kind != row.kind || m.asked() != "a/one p" {
				t.Errorf("%+v, asked %s", st.Outcome, m.asked())
			}
		})
	}
}
