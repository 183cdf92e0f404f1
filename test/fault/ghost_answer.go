package fault

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"laneway/shared/run"
	"laneway/shared/table"
)

// askGhost is a request and what it was answered with.
type askGhost struct {
	o        *op
	accepted bool
	replies  []string // but for "accepted"
	steps    []int
	at       time.Duration // of the first of them
}

// waitGhost is a waiter's row.
type waitGhost struct {
	run   string // short id
	taken actor
	step  int
	late  bool // its time was over when it was written: whoever asked has given up
}

func (g *ghost) asked(o *op) { g.asks[o.id] = &askGhost{o: o} }

// answered checks the answer of a request: always one, and always the same.
func (g *ghost) answered(c *conn, f *wire, body []byte) {
	a := g.asks[f.ID]
	if a == nil || a.o.conn != c {
		g.s.violatef("answer", "%s got an answer to %q, which it never asked", c.id, f.ID)
		return
	}
	if !f.OK && f.Error.Code == "UNAVAILABLE" && a.o.tries < tries && f.Payload.RunID == "" && len(a.replies) == 0 {
		g.s.notef(c.id, "%s is told to come again", f.ID)
		a.o.lost = true
		return
	}
	if f.OK && f.Payload.Status == "accepted" {
		if a.accepted {
			g.s.violatef("answer", "%s was accepted twice", f.ID)
		}
		a.accepted = true
		if r := g.runs[run.Short(a.o.runID)]; r == nil {
			g.s.violatef("accepted", "%s is told that %s is accepted, and it is not in the tables", c.id, a.o.runID)
		}
		return
	}
	if f.OK && a.o.method == "chat.send" && g.runs[run.Short(a.o.runID)] == nil {
		g.s.violatef("accepted", "%s is told that %s is accepted, and it is not in the tables", c.id, a.o.runID)
	}
	a.replies, a.steps = append(a.replies, string(body)), append(a.steps, g.s.steps)
	if len(a.replies) == 1 {
		a.at = g.s.now()
		return
	}
	if !sameAnswer(a.replies[0], string(body)) {
		g.s.violatef("answer", "the answers of %s differ:\n  %s\n  %s", f.ID, a.replies[0], body)
	}
	if !g.excused(a) {
		g.s.violatef("answer", "%s got %d answers, and nothing went wrong between them", f.ID, len(a.replies))
	}
}

// sameAnswer compares two frames, member by member.
func sameAnswer(a, b string) bool {
	var x, y map[string]any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

// excused says whether an answer may have come twice: something went wrong since the
// first of those that answered it began.
func (g *ghost) excused(a *askGhost) bool {
	since := a.steps[0]
	if r := g.runs[run.Short(a.o.runID)]; r != nil && r.end != nil {
		since = min(since, r.endStep)
	}
	for _, w := range g.waits {
		if w.run == run.Short(a.o.runID) {
			since = min(since, w.step)
		}
	}
	return g.s.lastFault >= since && g.s.lastFault > 0
}

// seeWaiter follows a waiter's row.
func (g *ghost) seeWaiter(c *change, op *table.Op) {
	key := op.Key.PK + op.Key.SK
	switch op.Kind {
	case table.Put:
		if g.waits[key] == nil {
			until := op.Item.Int("until")
			g.waits[key] = &waitGhost{run: shortOf(op.Key.PK), step: g.s.steps, late: until != 0 && until < time.Now().UnixMilli()}
		}
	case table.Update:
		if c.kind == kAnswered {
			delete(g.waits, key)
			return
		}
		w := g.waits[key]
		if w == nil {
			g.s.violatef("answer", "%s takes a waiter that is not there", c.by)
			return
		}
		w.taken, w.step = c.by, g.s.steps
	case table.Delete:
		delete(g.waits, key)
	case table.Check:
	}
}

// seeEvents checks S1 for the log: a number is used once.
func (g *ghost) seeEvents(c *change, op *table.Op) {
	if op.Kind != table.Put {
		return
	}
	r := g.runs[shortOf(op.Key.PK)]
	if r == nil {
		return
	}
	var first int64
	if _, err := fmt.Sscanf(op.Key.SK, "E#%d", &first); err != nil {
		return
	}
	last := op.Item.Int("n")
	what := hex.EncodeToString(op.Item.Bytes("ev"))
	for n := first; n <= last; n++ {
		old, used := r.nums[n]
		switch {
		case !used:
		case old.logged && old.what != what && c.kind != kEvents:
			g.s.violatef("sequence", "%s logs number %d of %s, which %s has logged otherwise", c.by, n, r.id, old.by)
		case !old.logged && old.by != c.by:
			g.s.violatef("sequence", "%s logs number %d of %s, which %s has used", c.by, n, r.id, old.by)
		}
		r.nums[n] = number{c.by, true, what}
	}
}

// told checks S1 and L4 for what a connection gets: numbers are used once, grow, and
// nothing new comes behind the end.
func (g *ghost) told(c *conn, p *proc, f *wire, body []byte) {
	pl := &f.Payload
	r := g.runs[run.Short(pl.RunID)]
	if r == nil {
		g.s.violatef("sequence", "%s is told of %s, which nobody knows", c.id, pl.RunID)
		return
	}
	old, used := r.nums[pl.Seq]
	if !used {
		r.nums[pl.Seq] = number{by: p.actor()}
	} else if !old.logged && old.by != p.actor() && p.slot.role == runner {
		g.s.violatef("sequence", "number %d of %s was used by %s, and again by %s: %s", pl.Seq, r.id, old.by, p.actor(), body)
	}
	v := c.of(pl.RunID)
	form := pl.Seq // a delta's two forms carry one number
	if f.Event == "chat" {
		form = -form
	}
	again := v.nums[form]
	switch {
	case again:
	case pl.Seq < v.last && !c.hurt && g.s.lastFault == 0:
		g.s.violatef("sequence", "%s gets number %d of %s behind %d", c.id, pl.Seq, r.id, v.last)
	case v.ended > 0 && pl.Seq > v.ended && pl.State == "" && pl.Data.Phase != "end" && pl.Data.Phase != "error":
		g.s.violatef("sequence", "%s gets number %d of %s behind its end (%d)", c.id, pl.Seq, r.id, v.ended)
	}
	v.nums[form], v.last = true, max(v.last, pl.Seq)
	switch {
	case pl.Stream == "lifecycle" && (pl.Data.Phase == "end" || pl.Data.Phase == "error"):
		if r.end == nil && !r.sharesEnd(g) {
			g.s.violatef("terminal", "%s is told the end of %s, which has not ended", c.id, r.id)
		}
		v.ended = pl.Seq
	case f.Event == "agent" && pl.Stream == "assistant" && !again:
		v.show(f)
	}
}

// sharesEnd says whether the run that took this one's message has ended.
func (r *runGhost) sharesEnd(g *ghost) bool {
	into := g.runs[r.into]
	return into != nil && into.end != nil
}

// finish checks what must be true when all is quiet.
func (g *ghost) finish() {
	if len(g.s.violations) > 0 {
		return
	}
	for _, short := range slices.Sorted(maps.Keys(g.runs)) {
		g.finishRun(short, g.runs[short])
	}
	for _, id := range slices.Sorted(maps.Keys(g.asks)) {
		g.finishAsk(g.asks[id])
	}
	for _, w := range g.waits {
		if w.late {
			continue // its writer stood still, and died behind the write; the row is cleaned up
		}
		g.s.violatef("answer", "a waiter of %s still waits, and nobody will come", w.run)
	}
	g.finishTranscripts()
}

// finishRun checks that a run has ended, once, and what became of its message.
func (g *ghost) finishRun(short string, r *runGhost) {
	switch {
	case r.end == nil:
		g.s.violatef("terminal", "%s never ended: %s", r.id, r.state)
	case strings.HasPrefix(short, "followup-overflow:"):
	case r.users == 0 && r.end.Kind == run.OK && !g.summarised(r):
		g.s.violatef("accepted", "%s ended ok, and its message is in no conversation", r.id)
	case r.users > 0 && !r.began && r.into == "":
		g.s.violatef("order", "%s never began, and its message is in the conversation", r.id)
	}
	if r.end != nil && r.end.Kind == run.OK && !strings.HasPrefix(r.end.Text, "part") && !strings.Contains(r.end.Text, "the end of ") {
		g.s.violatef("text", "%s ended ok with %q", r.id, r.end.Text)
	}
	c := g.s.conns["conn1"]
	v := c.runs[r.id]
	if r.end == nil || r.end.Kind != run.OK || v == nil || v.item == "" || c.hurt || r.into != "" {
		return
	}
	if !strings.HasSuffix(r.end.Text, v.text) {
		g.s.violatef("text", "%s shows %q of %s, which said %q", c.id, v.text, r.id, r.end.Text)
	}
}

// summarised says whether a message became a line of a summary.
func (g *ghost) summarised(r *runGhost) bool {
	return strings.HasPrefix(r.into, "followup-overflow:")
}

// finishAsk checks that every request was answered whose gateway lived.
func (g *ghost) finishAsk(a *askGhost) {
	o := a.o
	if o.lost || o.conn.hurt {
		return
	}
	if o.method == "agent" && a.accepted && len(a.replies) == 0 || o.over && len(a.replies) == 0 && !a.accepted {
		g.s.violatef("answer", "%s (%s %s) was never answered", o.id, o.method, o.runID)
		return
	}
	r := g.runs[run.Short(o.runID)]
	if g.s.p.Eager && g.s.lastFault == 0 && o.method == "agent.wait" && r != nil && r.end != nil && a.at > r.endAt+10*time.Second && a.at > o.at+10*time.Second {
		g.s.violatef("answer", "%s was answered %s after the end of %s", o.id, a.at-r.endAt, o.runID)
	}
}

// finishTranscripts checks what a provider and a reader would see.
func (g *ghost) finishTranscripts() {
	for _, key := range slices.Sorted(maps.Keys(g.sessions)) {
		sg := g.sessions[key]
		rows, err := g.s.rows(sg)
		if err != nil {
			g.s.violatef("transcript", "%s: %v", key, err)
			continue
		}
		if why := Invalid(rows); why != "" {
			g.s.violatef("transcript", "%s at rest: %s", key, why)
		}
	}
}
