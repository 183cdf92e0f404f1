package loop_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"laneway/shared/lane"
	"laneway/shared/model"
	"laneway/shared/push"
	"laneway/shared/run"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/shared/tool"
)

// seqs are numbers of events: how many deltas there were before is a matter of speed.
var seqs = regexp.MustCompile(`"seq":\d+,`)

// told is what a story's clients were told, without what is another one each time.
// prices are what a run cost, which depends on how often it was polled.
var prices = regexp.MustCompile(`"cost":\{[^}]*\},?`)

func (s *story) told(when func(map[string]any) bool) string {
	var out []string
	for _, c := range []*client{s.c, s.waiter} {
		for _, f := range c.all(when) {
			b, _ := json.Marshal(f)
			out = append(out, prices.ReplaceAllString(seqs.ReplaceAllString(string(b), ""), ""))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// TestL5_AnotherSettlerTellsExactlyTheSame: the holder dies right behind its terminal.
// Whoever finds the run tells events, final and waiters as the holder would have.
func TestL5_AnotherSettlerTellsExactlyTheSame(t *testing.T) {
	t.Parallel()
	ends := func(f map[string]any) bool {
		id := str(f, "payload.runId")
		return id == "r1" && (f["type"] == "res" || event("agent", "lifecycle", "end")(f) || event("chat", "", "final")(f))
	}
	whole := newStory(t)
	whole.process(nil).serve()
	whole.check(false)

	s := newStory(t)
	p := s.process(onWrite(func(_ int, ops []table.Op) faulty.Fault {
		if isTerminal(ops) {
			return faulty.DieAfter
		}
		return faulty.None
	}))
	if s.first(p) == nil {
		t.Fatal("a dead process acknowledged")
	}
	if got := s.told(ends); got != "" {
		t.Fatalf("told by a dead process: %s", got)
	}
	other := s.process(nil)
	must(t, s.deliverWakes(other)) // as long as the holder may be at it, its run is left to it
	if got := s.told(ends); got != "" {
		t.Fatalf("told beside the holder: %s", got)
	}
	other.serve()
	s.check(true)
	if a, b := whole.told(ends), s.told(ends); a != b {
		t.Errorf("told\n%s\nby the holder, and by another\n%s", a, b)
	}
}

// deliverWakes delivers what is due, once.
func (s *story) deliverWakes(p *process) error {
	for _, l := range s.box.take() {
		if err := p.deliver(l); err != nil {
			return err
		}
	}
	return nil
}

// TestL5_ExactlyItsOwnRuns: a run that ended while the holder told the end of its own
// is left to another settler, for whom there is a wake-up.
func TestL5_ExactlyItsOwnRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.on(say("answer"))
	c := w.connect()
	w.accept(c, "r1", "hi")
	w.accept(c, "r2", "next")
	done := false
	p := w.process(onWrite(func(_ int, ops []table.Op) faulty.Fault {
		if len(ops) == 1 && len(ops[0].TakeFrom) > 0 && !done { // the holder takes its run off
			done = true
			if !w.stop("r2") {
				t.Error("r2 not stopped")
			}
		}
		return faulty.None
	}))
	l := w.box.take()
	must(t, p.deliver(l[0]))
	m := w.meta()
	if !done || !slices.Equal(m.Unsettled, []string{"r2"}) || !m.Busy {
		t.Fatalf("session %+v", m)
	}
	if len(w.box.take()) == 0 {
		t.Fatal("nobody is woken for what is left")
	}
	w.clock.Advance(time.Second)
	_, err := p.core.Lanes.Sweep(t.Context())
	must(t, err)
	w.clock.Advance(30 * time.Second)
	p.serve()
	if str(w.reply(c, "r2"), "payload.timeoutPhase") != "queue" {
		t.Errorf("final of the stopped run: %v", w.reply(c, "r2"))
	}
	w.reply(c, "r1")
}

// TestL5_AWakeUpForWhatIsLeft, to the lane of the run that is next: nobody else would
// send one, because that of its accept was acknowledged beside the live claim.
func TestL5_AWakeUpForWhatIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gate := make(chan struct{})
	w.model.on(hold(gate, "one", ""), say("two"))
	c := w.connect()
	w.accept(c, "r1", "hi")
	p := w.process(nil)
	i := p.start()
	<-w.model.asked
	w.accept(c, "r2", "next", func(st *run.Status) { st.Lane = "cron" })
	must(t, p.deliver(w.next())) // a live claim: acknowledged
	close(gate)
	must(t, i.wait())
	next := w.next()
	wake, err := lane.ParseWakeup(next.body)
	must(t, err)
	if next.lane != "cron" || wake.Lane != "cron" {
		t.Errorf("woken on %s: %+v", next.lane, wake)
	}
	must(t, p.deliver(next))
	if text(w.reply(c, "r2")) != "two" {
		t.Error("the next run is not answered")
	}
}

// TestWakeUp_OfAnotherLane: a receiver that finds the next run in another lane sends a
// wake-up there and runs nothing.
func TestWakeUp_OfAnotherLane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.on(say("answer"))
	c := w.connect()
	w.accept(c, "r1", "hi", func(st *run.Status) { st.Lane = "subagent" })
	w.box.lose()
	p := w.process(nil)
	must(t, p.deliver(letter{lane: "main", body: wakeBody}))
	if len(w.model.calls()) != 0 || w.meta().Owner != "" {
		t.Fatal("a run began in another lane's place")
	}
	next := w.next()
	if next.lane != "subagent" {
		t.Fatalf("woken on %s", next.lane)
	}
	must(t, p.deliver(next))
	if text(w.reply(c, "r1")) != "answer" {
		t.Error("no answer")
	}
}

// TestL5_TwoSettlersAtOnce of a run that was stopped before it began: its caller is
// told once.
func TestL5_TwoSettlersAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 10 {
		w := newWorld(t)
		gate := make(chan struct{})
		w.model.on(hold(gate, "one", ""))
		c := w.connect()
		w.accept(c, "r1", "hi")
		p := w.process(nil)
		i := p.start()
		<-w.model.asked
		w.accept(c, "r2", "next")
		w.stop("r2")
		var settlers []*invocation
		for _, l := range w.box.take() {
			settlers = append(settlers, p.begin(func() error { return p.deliver(l) }), p.begin(func() error { return p.deliver(l) }))
		}
		for _, s := range settlers {
			must(t, s.wait())
		}
		close(gate)
		must(t, i.wait())
		p.serve()
		w.reply(c, "r2")
		if n := len(c.all(func(f map[string]any) bool {
			return event("agent", "lifecycle", "end")(f) && str(f, "payload.runId") == "r2"
		})); n != 1 {
			t.Fatalf("round %d: %d ends of the stopped run", round, n)
		}
	}
}

// TestL5_TheCallersReplyIsNotLostWithItsConnectionForAMoment: it is in the record, and
// goes later.
func TestL5_TheReplyGoesLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.on(say("answer"))
	c := w.connect()
	w.accept(c, "r1", "hi")
	first := w.process(onWrite(func(_ int, ops []table.Op) faulty.Fault {
		if isTerminal(ops) {
			return faulty.DieAfter
		}
		return faulty.None
	}))
	l := w.next()
	_ = first.deliver(l)
	w.box.back(l)
	p := w.process(nil)
	fails := 3
	p.posts = func(push.Target, []byte) error {
		if fails--; fails >= 0 {
			return push.ErrThrottled
		}
		return nil
	}
	p.serve()
	for range 20 {
		w.clock.Advance(5 * time.Second)
		for _, l := range w.box.take() {
			must(t, p.deliver(l))
		}
	}
	if text(w.reply(c, "r1")) != "answer" {
		t.Error("no answer")
	}
}

// TestL3_ManySteersAndTheirOwnEnds: each of them has the run's outcome under its own
// id, and nothing stays in the session.
func TestL3_ManySteersAndTheirOwnEnds(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	wait := newTool("wait", tool.ReadOnly)
	w := newWorld(t, wait)
	c := w.connect()
	w.model.on(hold(gate, "", "first"), say("end"))
	w.accept(c, "r1", "hi")
	p := w.process(nil)
	i := p.start()
	<-w.model.asked
	steered := 0
	for n := range lane.MaxMail + 5 {
		if w.steer(c, fmt.Sprint("s", n), fmt.Sprint("steer ", n)) {
			steered++
		}
	}
	if steered != lane.MaxMail {
		t.Errorf("%d were steered", steered)
	}
	close(gate)
	must(t, i.wait())
	p.serve()
	for n := range steered {
		if id := fmt.Sprint("s", n); text(w.reply(c, id)) != "end" || w.status(id).State != run.Ended {
			t.Errorf("%s: %v", id, w.reply(c, id))
		}
	}
	var users []string
	for _, m := range w.model.calls()[1].Messages {
		if m.Role == model.User {
			users = append(users, m.Content[0].Text)
		}
	}
	if len(users) != steered+1 || users[1] != "steer 0" || users[steered] != fmt.Sprint("steer ", steered-1) {
		t.Errorf("the model was asked %q", users)
	}
}
