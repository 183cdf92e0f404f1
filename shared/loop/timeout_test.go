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
