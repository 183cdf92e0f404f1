package watch

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"laneway/shared/clock"
	"laneway/shared/model"
	"laneway/shared/model/modeltest"
	"laneway/shared/model/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type call = func(context.Context) iter.Seq2[model.Part, error]

// step is what a scripted provider does: wait, then give a part, or a sign of
// life only.
type step struct {
	wait time.Duration
	part model.Part
	sign bool
}

func txt(after time.Duration) step { return step{wait: after, part: model.Part{Text: "x"}} }

// provider plays steps and ends as adapters do.
func provider(steps ...step) call {
	return func(ctx context.Context) iter.Seq2[model.Part, error] {
		return func(yield func(model.Part, error) bool) {
			for _, st := range append(steps, step{part: model.Part{Done: &model.Done{StopReason: "stop"}}}) {
				select {
				case <-time.After(st.wait):
				case <-ctx.Done():
					yield(model.Part{}, model.Failure{Provider: "p", Model: "m", Status: 200, Err: context.Cause(ctx)}.Classified())
					return
				}
				if st.sign {
					model.Progress(ctx)()
					continue
				}
				if !yield(st.part, nil) {
					return
				}
			}
		}
	}
}

// window is what a call is watched with.
type window struct{ first, idle time.Duration }

var windows = window{first: 120 * s, idle: 60 * s}

func watched(ctx context.Context, w window, c call) iter.Seq2[model.Part, error] {
	return guarded(ctx, clock.System{}, w.first, w.idle, c)
}

func TestSilence(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		cfg   window
		steps []step
		after time.Duration
		text  string // of the error; empty: none
	}{
		{"nothing ever comes", windows, []step{txt(time.Hour)}, 120 * s, "timeout (HTTP 200): LLM idle timeout (120s): no response from model"},
		{"just in time for the first window", windows, []step{txt(119 * s)}, 119 * s, ""},
		{"stalls after the first part", windows, []step{txt(10 * s), txt(time.Hour)}, 70 * s, "timeout (HTTP 200): LLM idle timeout (60s): no response from model"},
		{"stalls before the end", windows, []step{txt(10 * s), txt(59 * s), {wait: time.Hour, part: model.Part{Text: "x"}}}, 129 * s, "timeout (HTTP 200): LLM idle timeout (60s): no response from model"},
		{"a chunk every 59 s for ten minutes", windows, []step{txt(59 * s), txt(59 * s), txt(59 * s), txt(59 * s), txt(59 * s), txt(59 * s), txt(59 * s), txt(59 * s), txt(59 * s), txt(59 * s)}, 590 * s, ""},
		{"F24: only thinking for 110 s", windows, []step{{wait: 55 * s, part: model.Part{Thinking: "hm"}}, {wait: 55 * s, part: model.Part{Thinking: "hm"}}, txt(55 * s)}, 165 * s, ""},
		{"keep-alives and pieces of a tool call", windows, []step{{wait: 100 * s, sign: true}, {wait: 50 * s, sign: true}, {wait: 50 * s, sign: true}, txt(50 * s)}, 250 * s, ""},
		{"headers end the first window", windows, []step{{wait: s, sign: true}, txt(time.Hour)}, 61 * s, "timeout (HTTP 200): LLM idle timeout (60s): no response from model"},
		{"idle off: only the beginning is guarded", window{first: 300 * s}, []step{{wait: s, sign: true}, txt(time.Hour)}, time.Hour + s, ""},
		{"idle off: the beginning is guarded", window{first: 300 * s}, []step{txt(time.Hour)}, 300 * s, "timeout (HTTP 200): LLM idle timeout (300s): no response from model"},
		{"first off: the idle window begins with the first part", window{idle: 60 * s}, []step{txt(time.Hour), txt(time.Hour)}, time.Hour + 60*s, "timeout (HTTP 200): LLM idle timeout (60s): no response from model"},
		{"both off", window{}, []step{txt(time.Hour), txt(time.Hour)}, 2 * time.Hour, ""},
		{"short windows are shown exactly", window{first: 50 * time.Millisecond}, []step{txt(time.Hour)}, 50 * time.Millisecond, "timeout (HTTP 200): LLM idle timeout (0.05s): no response from model"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				turn := modeltest.Collect(t, watched(t.Context(), row.cfg, provider(row.steps...)))
				if took := time.Since(start); took != row.after {
					t.Errorf("ended after %s, want %s", took, row.after)
				}
				switch {
				case row.text == "" && turn.Err != nil:
					t.Errorf("err = %v", turn.Err)
				case row.text != "":
					if turn.Err == nil || turn.Err.Error() != row.text || turn.Err.Class != model.Timeout || !errors.Is(turn.Err, model.ErrIdle) || turn.Err.Provider != "p" || turn.Err.Model != "m" {
						t.Errorf("err = %+v, want %s", turn.Err, row.text)
					}
				}
			})
		})
	}
}

func TestF24_TheConsumersTimeIsNotSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		for _, err := range watched(t.Context(), windows, provider(txt(s), txt(50*s), txt(50*s))) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			<-time.After(10 * time.Minute) // in the bubble: a consumer that is slow
		}
		if n != 4 {
			t.Errorf("%d parts", n)
		}
	})
}

func TestTheCallersOwnEndIsNoTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(30*s, cancel)
		turn := modeltest.Collect(t, watched(ctx, windows, provider(txt(s), txt(time.Hour))))
		if turn.Err == nil || turn.Err.Class != model.Aborted {
			t.Errorf("err = %v", turn.Err)
		}
	})
}

func TestLeavingTheRangeEndsTheWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
		start := time.Now()
		for range watched(t.Context(), windows, provider(txt(s), txt(time.Hour))) {
			break
		}
		synctest.Wait()
		if time.Since(start) != s {
			t.Errorf("took %s", time.Since(start))
		}
	})
}

func TestTheCallersProgressIsStillTold(t *testing.T) {
	t.Parallel()
	n := 0
	ctx := model.WithProgress(t.Context(), func() { n++ })
	modeltest.Collect(t, watched(ctx, windows, provider(step{sign: true}, step{sign: true})))
	if n != 2 {
		t.Errorf("told %d times", n)
	}
}

func TestAnAdapterThatEndsWithoutAWordAfterTheCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silent := func(ctx context.Context) iter.Seq2[model.Part, error] {
			return func(func(model.Part, error) bool) { <-ctx.Done() }
		}
		turn := modeltest.Collect(t, watched(t.Context(), windows, silent))
		if !errors.Is(turn.Err, model.ErrIdle) {
			t.Errorf("err = %v", turn.Err)
		}
	})
}

// gated is a clock that stands until it is opened; then every look is an hour later. A
// call that is cut has its time to end.
type gated struct {
	open  chan time.Time
	looks atomic.Int64
}

func (c *gated) Now() time.Time {
	select {
	case <-c.open:
		return time.Unix(0, 0).Add(time.Duration(c.looks.Add(1)) * time.Hour)
	default:
		return time.Unix(0, 0)
	}
}

func (c *gated) After(d time.Duration) <-chan time.Time {
	if d == Settle {
		return nil
	}
	return c.open
}

// The whole way: a real connection to a server that stalls is closed at once.
func TestTheConnectionIsClosedWhenAWindowPasses(t *testing.T) {
	t.Parallel()
	c := &gated{open: make(chan time.Time)}
	srv := modeltest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		modeltest.Events(w, `{"choices":[{"delta":{"content":"Hel"}}]}`)
		close(c.open)
		<-r.Context().Done()
	})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	p, err := openai.New(openai.Config{BaseURL: srv.URL, HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	turn := modeltest.Collect(t, Idle(t.Context(), c, Windows{Endpoint: model.Cloud}, p.Stream, model.Request{Model: "m"}))
	if !errors.Is(turn.Err, model.ErrIdle) || turn.Err.Class != model.Timeout || turn.Err.Provider != "openai" {
		t.Errorf("err = %v", turn.Err)
	}
	srv.AwaitClosed(t)
}

// The windows of the table reach the watch.
func TestIdleUsesTheTable(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		w     Windows
		step  step
		after time.Duration
	}{
		{Windows{Endpoint: model.Cloud}, txt(time.Hour), 120 * s},
		{Windows{Endpoint: model.Local}, txt(time.Hour), 300 * s},
		{Windows{Endpoint: model.Cloud, RunTimeout: 600 * s, Cron: true}, step{wait: s, sign: true}, 61 * s},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			stream := func(ctx context.Context, _ model.Request) iter.Seq2[model.Part, error] {
				return provider(row.step, txt(time.Hour))(ctx)
			}
			turn := modeltest.Collect(t, Idle(t.Context(), clock.System{}, row.w, stream, model.Request{}))
			if !errors.Is(turn.Err, model.ErrIdle) || time.Since(start) != row.after {
				t.Errorf("%+v: %v after %s, want %s", row.w, turn.Err, time.Since(start), row.after)
			}
		})
	}
}
