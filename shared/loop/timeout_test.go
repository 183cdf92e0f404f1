package loop_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/tool"
)

// TestRuntime51_AToolThatIgnoresAnAbortDoesNotHoldTheLane: what works for a run that
// was stopped has two seconds to end. Then the run is over without it, its call is
// closed, and the next message has its turn.
func TestRuntime51_AToolThatIgnoresAnAbortDoesNotHoldTheLane(t *testing.T) {
	t.Parallel()
	stuck := newTool("stuck", tool.Unsafe)
	began, told, free := make(chan struct{}), make(chan struct{}), make(chan struct{})
	defer close(free)
	stuck.run = func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		close(began)
		<-ctx.Done()
		close(told)
		<-free
		return tool.TextResult("much later"), nil
	}
	w := newWorld(t, stuck)
	w.model.on(callTools(model.Block{ID: "c1", Name: "stuck", Arguments: json.RawMessage(`{}`)}), say("the next"))
	c := w.connect()
	w.accept(c, "r1", "hi")
	p := w.process(nil)
	first := p.start()
	<-began
	w.stop("r1")
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for moved := time.Duration(0); ; moved += 100 * time.Millisecond {
		select {
		case err := <-first.err:
			must(t, err)
			select {
			case <-told:
			default:
				t.Error("the tool was not told")
			}
		case <-tick.C:
			if moved > time.Minute {
				t.Fatal("the run does not end")
			}
			w.clock.Advance(100 * time.Millisecond)
			continue
		}
		break
	}
	st := w.status("r1")
	if st.Outcome == nil || st.Outcome.Kind != run.Aborted || st.Outcome.StopReason != "rpc" {
		t.Fatalf("%+v", st.Outcome)
	}
	rows := w.rows()
	last := rows[len(rows)-1]
	if last.ToolCallID != "c1" || !last.IsError || last.Text() != tool.TextAborted {
		t.Errorf("the call is not closed: %+v", last)
	}
	w.accept(c, "r2", "next")
	p.serve()
	if text(w.reply(c, "r2")) != "the next" {
		t.Errorf("%v", w.reply(c, "r2"))
	}
}

// TestRuntime51_AModelStreamThatIgnoresItsEndDoesNotHoldTheLane: row "after abort": what
// told it to end is all the same. The run is over two seconds later, without what the
// stream would still say, and the next message has its turn.
func TestRuntime51_AModelStreamThatIgnoresItsEndDoesNotHoldTheLane(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(*run.Status)
		abort  func(*world)
		kind   run.OutcomeKind
		least  time.Duration
	}{
		{"a stop", nil, func(w *world) { w.stop("r1") }, run.Aborted, 0},
		{"the run's time is over", func(st *run.Status) { st.Input.TimeoutMs = 20_000 }, nil, run.Timeout, 20 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			free := make(chan struct{})
			defer close(free)
			w.model.on(func(_ context.Context, _ model.Request, yield func(model.Part, error) bool) {
				yield(model.Part{Text: "so far"}, nil)
				<-free
				yield(model.Part{Text: " and much later"}, nil)
			}, say("the next"))
			c := w.connect()
			change := row.change
			if change == nil {
				change = func(*run.Status) {}
			}
			w.accept(c, "r1", "hi", change)
			p := w.process(nil)
			first, began := p.start(), w.clock.Now()
			c.until(t, "its first words", event("agent", "assistant", ""))
			if row.abort != nil {
				row.abort(w)
			}
			w.ends(first, row.least-time.Second)
			if took := w.clock.Now().Sub(began) - row.least; took < 2*time.Second || took > 10*time.Second {
				t.Errorf("the run ended %s after it was told to", took)
			}
			st := w.status("r1")
			if st.Outcome == nil || st.Outcome.Kind != row.kind {
				t.Fatalf("%+v", st.Outcome)
			}
			if rows := w.rows(); len(rows) != 2 || rows[1].Text() != "so far" || rows[1].Abort == nil {
				t.Errorf("rows %+v", rows)
			}
			if w.log.count("model call was left behind") != 1 {
				t.Error("nobody was warned")
			}
			w.accept(c, "r2", "next")
			p.serve()
			if text(w.reply(c, "r2")) != "the next" {
				t.Errorf("%v", w.reply(c, "r2"))
			}
		})
	}
}
