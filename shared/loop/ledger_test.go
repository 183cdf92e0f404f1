package loop_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/shared/tool"
)

func ledgerState(w *world, step int64, index int) string {
	it, err := w.store.Get(w.t.Context(), run.RefOf(session.DefaultTenant, "r1").LedgerKey(step, index))
	if err != nil {
		return ""
	}
	return it.Attrs.Str("state")
}

// results is what the model was told of calls, by their ids.
func results(r model.Request) map[string]string {
	out := map[string]string{}
	for _, m := range r.Messages {
		if m.Role == model.ToolResult {
			out[m.ToolCallID] = m.Content[0].Text
		}
	}
	return out
}

// TestL2_TheLedgerIsWrittenBeforeAnySideEffect and says done when the result is in
// the transcript.
func TestL2_TheLedgerIsWrittenBeforeAnySideEffect(t *testing.T) {
	t.Parallel()
	var w *world
	act := newTool("act", tool.Unsafe)
	act.spec.Sequential = true
	act.run = func(context.Context, tool.Call) (tool.Result, error) {
		for i := range 2 {
			if got := ledgerState(w, 1, i); got == "" || got == "planned" {
				t.Errorf("call %d is %q while the first runs", i, got)
			}
		}
		return tool.TextResult("ok"), nil
	}
	w = newWorld(t, act)
	w.model.on(callTools(block("a", "act"), block("a2", "act")), say("end"))
	c := w.connect()
	w.accept(c, "r1", "hi")
	w.process(nil).serve()
	for i := range 2 {
		if got := ledgerState(w, 1, i); got != "done" {
			t.Errorf("call %d is %q at the end", i, got)
		}
	}
	if keys := []string{act.calls[0].Key, act.calls[1].Key}; !slices.Equal(keys, []string{"r1/1/0", "r1/1/1"}) {
		t.Errorf("idempotency keys %q", keys)
	}
}

// TestL2_KilledBehindTheSideEffect: the process dies when the tools have done their
// work and before a result is stored. The call that may have happened twice is not
// made again, and the model is told; the others are.
func TestL2_KilledBehindTheSideEffect(t *testing.T) {
	t.Parallel()
	var first *process
	tools := map[string]*fakeTool{
		"unsafe": newTool("unsafe", tool.Unsafe), "idempotent": newTool("idempotent", tool.Idempotent), "read": newTool("read", tool.ReadOnly),
	}
	w := newWorld(t, tools["unsafe"], tools["idempotent"], tools["read"])
	w.model.on(callTools(block("u", "unsafe"), block("i", "idempotent"), block("r", "read")), say("end"))
	c := w.connect("tool-events")
	shown := make(chan struct{})
	for _, f := range tools {
		f.run = func(_ context.Context, c tool.Call) (tool.Result, error) {
			<-shown
			first.kill()
			return tool.TextResult("did " + c.Name), nil
		}
	}
	w.accept(c, "r1", "hi")
	first = w.process(nil)
	i := first.start()
	c.until(t, "the start of the last call", func(f map[string]any) bool {
		return event("agent", "tool", "start")(f) && str(f, "payload.data.toolCallId") == "r"
	})
	close(shown)
	if err := i.wait(); err == nil {
		t.Fatal("a dead process acknowledged")
	}
	w.clock.Advance(lost)
	w.process(nil).serve()
	if n := []int{tools["unsafe"].count(), tools["idempotent"].count(), tools["read"].count()}; !slices.Equal(n, []int{1, 2, 2}) {
		t.Errorf("made %v times", n)
	}
	got := results(w.model.calls()[1])
	if !strings.Contains(got["u"], "unknown: check before doing it again") || got["i"] != "did idempotent" || got["r"] != "did read" {
		t.Errorf("the model was told %q", got)
	}
	if a, b := tools["idempotent"].calls[0].Key, tools["idempotent"].calls[1].Key; a != b {
		t.Errorf("keys %s and %s", a, b)
	}
	for _, phase := range []string{"start", "result"} {
		if n := len(c.all(event("agent", "tool", phase))); n != 3 {
			t.Errorf("%d events of phase %s", n, phase)
		}
	}
	if text(w.reply(c, "r1")) != "end" {
		t.Error("no answer")
	}
}

// TestL2_DoneResultsAreUsedAgain: of a batch one call is done and in the ledger, the
// other one is under way when the process dies.
func TestL2_DoneResultsAreUsedAgain(t *testing.T) {
	t.Parallel()
	var first *process
	inLedger := make(chan struct{})
	quick, slow := newTool("quick", tool.Unsafe), newTool("slow", tool.ReadOnly)
	slow.run = func(context.Context, tool.Call) (tool.Result, error) {
		<-inLedger
		first.kill()
		return tool.TextResult("slow"), nil
	}
	w := newWorld(t, quick, slow)
	w.model.on(callTools(block("q", "quick"), block("s", "slow")), say("end"))
	c := w.connect("tool-events")
	w.accept(c, "r1", "hi")
	first = w.process(nil)
	i := first.start()
	c.until(t, "the result of quick", event("agent", "tool", "result")) // it is pushed when it is stored
	close(inLedger)
	if i.wait() == nil {
		t.Fatal("a dead process acknowledged")
	}
	slow.run = nil
	w.clock.Advance(lost)
	w.process(nil).serve()
	if got := results(w.model.calls()[1]); got["q"] != "done q" || got["s"] != "done s" {
		t.Errorf("the model was told %q", got)
	}
	if quick.count() != 1 || slow.count() != 2 {
		t.Errorf("made %d and %d times", quick.count(), slow.count())
	}
	if n := len(c.all(event("agent", "tool", "result"))); n != 2 {
		t.Errorf("%d results told", n)
	}
}

// TestL2_CallsOfAMessageThatCameTooLateArePlanned: the answer of the model is kept
// though too little of the invocation is left for its calls; they run in the next.
func TestL2_CallsOfAMessageThatCameTooLateArePlanned(t *testing.T) {
	t.Parallel()
	act := newTool("act", tool.Unsafe)
	w := newWorld(t, act)
	p := w.process(nil)
	w.model.on(func(ctx context.Context, r model.Request, yield func(model.Part, error) bool) {
		w.clock.Advance(8 * time.Second) // of the 35 that there are
		callTools(block("a", "act"))(ctx, r, yield)
	}, say("end"))
	c := w.connect("tool-events")
	w.accept(c, "r1", "hi")
	must(t, p.handle(w.next(), w.clock.Now().Add(35*time.Second)))
	if act.count() != 0 || ledgerState(w, 1, 0) != "planned" {
		t.Fatalf("made %d times, the ledger says %q", act.count(), ledgerState(w, 1, 0))
	}
	if m := w.meta(); m.Owner != "" || m.Active != "r1" || m.Head != 2 || m.Stalled != 0 {
		t.Fatalf("session %+v", m)
	}
	if n := len(c.all(event("agent", "tool", "start"))); n != 0 {
		t.Errorf("%d starts told of a call that has not begun", n)
	}
	must(t, p.handle(w.next(), w.clock.Now().Add(10*time.Minute)))
	if act.count() != 1 || ledgerState(w, 1, 0) != "done" || results(w.model.calls()[1])["a"] != "done a" {
		t.Errorf("made %d times, the ledger says %q", act.count(), ledgerState(w, 1, 0))
	}
	if n := len(c.all(event("agent", "tool", "start"))); n != 1 {
		t.Errorf("%d starts told", n)
	}
	p.serve()
	if text(w.reply(c, "r1")) != "end" {
		t.Error("no answer")
	}
}

// TestL2_APlannedCallIsStartedInTheLedgerFirst: also by the attempt that finds it
// planned; killed behind its side effect it is not made again.
func TestL2_APlannedCallIsStartedInTheLedgerFirst(t *testing.T) {
	t.Parallel()
	var second *process
	act := newTool("act", tool.Unsafe)
	act.run = func(_ context.Context, c tool.Call) (tool.Result, error) {
		second.kill()
		return tool.TextResult("did it"), nil
	}
	w := newWorld(t, act)
	w.model.on(func(ctx context.Context, r model.Request, yield func(model.Part, error) bool) {
		w.clock.Advance(8 * time.Second)
		callTools(block("a", "act"))(ctx, r, yield)
	}, say("end"))
	c := w.connect()
	w.accept(c, "r1", "hi")
	must(t, w.process(nil).handle(w.next(), w.clock.Now().Add(35*time.Second)))
	second = w.process(nil)
	if second.start().wait() == nil {
		t.Fatal("a dead process acknowledged")
	}
	w.clock.Advance(lost)
	w.process(nil).serve()
	if got := results(w.model.calls()[1])["a"]; act.count() != 1 || !strings.Contains(got, "unknown") {
		t.Errorf("made %d times, the model was told %q", act.count(), got)
	}
}

// TestL2_NoCheckpointBetweenAMessageAndItsTools, unless it plans them: whatever a
// commit leaves, every call of the last message has its ledger row.
func TestL2_NoCheckpointBetweenAMessageAndItsTools(t *testing.T) {
	t.Parallel()
	act := newTool("act", tool.Unsafe)
	w := newWorld(t, act)
	w.model.on(callTools(block("a", "act"), block("b", "act")), say("end"))
	c := w.connect()
	w.accept(c, "r1", "hi")
	seen := false
	w.process(onWrite(func(_ int, ops []table.Op) faulty.Fault {
		rows, ledger := transcriptOps(ops), ledgerOps(ops)
		if rows == 2 && ledger == 2 && !seen { // user and message
			seen = true
			for _, o := range ops {
				if strings.HasPrefix(o.Key.SK, "C#") && o.Item.Str("state") != "started" {
					t.Errorf("row %v", o.Item)
				}
			}
		}
		return faulty.None
	})).serve()
	if !seen {
		t.Error("message and ledger are not one transaction")
	}
}

// TestL2_ACallCutByTheEndOfTheInvocation: what may be made again is, once; what may
// not is not, and the model is told that it was stopped.
func TestL2_ACallCutByTheEndOfTheInvocation(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 8)
	hang := func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	unsafe, safe, quick := newTool("unsafe", tool.Unsafe), newTool("safe", tool.ReadOnly), newTool("quick", tool.Unsafe)
	unsafe.run, safe.run = hang, hang
	w := newWorld(t, unsafe, safe, quick)
	w.model.on(callTools(block("u", "unsafe"), block("s", "safe"), block("q", "quick")), say("end"))
	c := w.connect("tool-events")
	w.accept(c, "r1", "hi")
	p := w.process(nil)
	cut := func(calls int) {
		t.Helper()
		l := w.next()
		i := p.begin(func() error { return p.handle(l, w.clock.Now().Add(time.Minute)) })
		for range calls {
			<-begun
		}
		w.pass(54*time.Second, 3) // the holder's look, the ends of run and invocation
		w.clock.Advance(time.Second)
		must(t, i.wait())
	}
	cut(2)
	if states := []string{ledgerState(w, 1, 0), ledgerState(w, 1, 1), ledgerState(w, 1, 2)}; !slices.Equal(states, []string{"done", "planned", "done"}) {
		t.Fatalf("the ledger says %q", states)
	}
	cut(1)
	p.serve()
	got := results(w.model.calls()[1])
	for _, id := range []string{"u", "s"} {
		if !strings.Contains(got[id], "was stopped: it took longer than the function") {
			t.Errorf("the model was told of %s: %q", id, got[id])
		}
	}
	if got["q"] != "done q" || unsafe.count() != 1 || safe.count() != 2 || quick.count() != 1 {
		t.Errorf("made %d, %d, %d times; %q", unsafe.count(), safe.count(), quick.count(), got)
	}
	if text(w.reply(c, "r1")) != "end" {
		t.Error("no answer")
	}
	for phase, want := range map[string]int{"start": 3, "result": 3} {
		if n := len(c.all(event("agent", "tool", phase))); n != want {
			t.Errorf("%d events of phase %s", n, phase)
		}
	}
}
