package loop_test

import (
	"context"
	"testing"
	"time"

	"laneway/shared/diag"
	"laneway/shared/model"
	"laneway/shared/session"
	"laneway/shared/tool"
)

var thresholds = diag.Thresholds{}.WithDefaults()

// judged is what a look at the session says now.
func (w *world) judged() (diag.Input, diag.Report) {
	w.t.Helper()
	in := diag.Observe(w.meta(), w.clock.Now(), 5*time.Second, 0)
	if !thresholds.Considered(in) {
		return in, diag.Report{}
	}
	return in, thresholds.Classify(in)
}

// lives moves the clock while the session's holder keeps its claim, and until it has
// told what it knows.
func (w *world) lives(d time.Duration) {
	w.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	give := time.After(within)
	for end := w.clock.Now().Add(d); w.clock.Now().Before(end); {
		step := time.Second
		if w.meta().Lease.Sub(w.clock.Now()) < 18*time.Second {
			step = 20 * time.Millisecond // until it has renewed
		}
		w.clock.Advance(step)
		select {
		case <-tick.C:
		case <-give:
			w.t.Fatal("the claim is not renewed")
		}
	}
}

// TestF24_WhateverAModelSendsIsProgress: pieces of text, thinking alone, and keep-alives
// count, with nothing else said before them; what is silent is noticed.
func TestF24_WhateverAModelSendsIsProgress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sign func(ctx context.Context, yield func(model.Part, error) bool)
		want string
	}{
		"text":                          {func(_ context.Context, yield func(model.Part, error) bool) { yield(model.Part{Text: "a"}, nil) }, ""},
		"thinking":                      {func(_ context.Context, yield func(model.Part, error) bool) { yield(model.Part{Thinking: "a"}, nil) }, ""},
		"a sign of life without a part": {func(ctx context.Context, _ func(model.Part, error) bool) { model.Progress(ctx)() }, ""},
		"nothing":                       {func(context.Context, func(model.Part, error) bool) {}, "session.long_running"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			beat, end := make(chan struct{}), make(chan struct{})
			w.model.on(func(ctx context.Context, _ model.Request, yield func(model.Part, error) bool) {
				for {
					select {
					case <-beat:
						c.sign(ctx, yield)
						beat <- struct{}{}
					case <-end:
						yield(model.Part{Text: "end"}, nil)
						yield(done("stop"), nil)
						return
					}
				}
			})
			w.accept(w.connect(), "r1", "hi")
			p := w.process(nil)
			i := p.start()
			<-w.model.asked
			for range 5 {
				w.lives(30 * time.Second)
				beat <- struct{}{}
				<-beat
			}
			w.lives(20 * time.Second) // a renewal tells it
			in, rep := w.judged()
			if rep.Event != c.want || !in.Owned || in.Kind != session.WorkModel {
				t.Errorf("%+v, %+v", in, rep)
			}
			if m := w.meta(); m.Cancel != "" || m.Active != "r1" {
				t.Errorf("%+v", m)
			}
			close(end)
			must(t, i.wait())
			if m := w.meta(); m.Progress != (session.Progress{}) {
				t.Errorf("after the end: %+v", m.Progress)
			}
		})
	}
}

// TestF24_ToolsAreProgress: a tool that begins, tells, and ends does not look like a
// silent one.
func TestF24_ToolsAreProgress(t *testing.T) {
	t.Parallel()
	begun, beat := make(chan struct{}), make(chan struct{})
	slow := newTool("slow", tool.Unsafe)
	slow.run = func(_ context.Context, call tool.Call) (tool.Result, error) {
		close(begun)
		for range beat {
			call.Update(tool.TextResult("so far"))
			beat <- struct{}{}
		}
		return tool.TextResult("done"), nil
	}
	w := newWorld(t, slow)
	w.model.on(callTools(model.Block{ID: "call_1", Name: "slow", Arguments: []byte(`{}`)}), say("fine"))
	w.accept(w.connect(), "r1", "hi")
	p := w.process(nil)
	i := p.start()
	<-begun
	w.lives(3 * time.Minute)
	in, rep := w.judged()
	if rep.Reason != "blocked_tool_call" || rep.Recover || in.Tool != "slow" || in.CallID != "call_1" || in.WorkAge < 2*time.Minute {
		t.Errorf("silent: %+v, %+v", in, rep)
	}
	for range 20 {
		beat <- struct{}{}
		<-beat
		w.lives(time.Minute)
	}
	if in, rep := w.judged(); rep != (diag.Report{}) || in.Why != session.ProgressToolUpdated {
		t.Errorf("after 20 minutes of signs: %+v, %+v", in, rep)
	}
	close(beat)
	must(t, i.wait())
}
