package fault

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// ghost knows what really happened: it sees every write that went through, every
// effect of a tool, and every frame that arrived, and says which rule was broken.
type ghost struct {
	s        *Sim
	sessions map[string]*sessionGhost // by key
	byPK     map[string]*sessionGhost // by the transcript's partition, without its id
	runs     map[string]*runGhost     // by short id
	calls    map[string]*callGhost    // tool calls by key
	asks     map[string]*askGhost     // requests by id
	once     map[string]bool
	poison   map[string]bool
	waits    map[string]*waitGhost // waiter rows by key

	recovered []time.Duration
}

// sessionGhost is a session as it really is.
type sessionGhost struct {
	ref     session.Ref
	meta    session.Meta
	holder  actor
	renewed time.Duration // when the holder last wrote
	died    time.Duration // when it died; 0: it did not
	mail    map[string]bool
	head    int64
}

// runGhost is what is known of a run.
type runGhost struct {
	id      string
	s       *sessionGhost
	seq     int64
	state   run.State
	into    string
	began   bool // it was active
	end     *run.Outcome
	endStep int
	endAt   time.Duration
	stopped bool // accepted as stopped
	users   int  // rows that hold its message
	gathers bool // it was to wait for more of its sender
	nums    map[int64]number
	tries   int64
}

// number is an event number that was used.
type number struct {
	by     actor
	logged bool
	what   string
}

func newGhost(s *Sim) *ghost {
	return &ghost{
		s: s, sessions: make(map[string]*sessionGhost), byPK: make(map[string]*sessionGhost), runs: make(map[string]*runGhost),
		calls: make(map[string]*callGhost), asks: make(map[string]*askGhost), once: make(map[string]bool), poison: make(map[string]bool),
		waits: make(map[string]*waitGhost),
	}
}

// session is the ghost of a session.
func (g *ghost) session(ref session.Ref) *sessionGhost {
	sg := g.sessions[ref.Key]
	if sg == nil {
		sg = &sessionGhost{ref: ref, mail: make(map[string]bool)}
		g.sessions[ref.Key] = sg
		pk := ref.TranscriptPK("x")
		g.byPK[strings.TrimSuffix(pk, "x")] = sg
	}
	return sg
}

func (g *ghost) ofRow(pk string) *sessionGhost { return g.byPK[pk[:strings.LastIndexByte(pk, '#')+1]] }

func shortOf(pk string) string { return pk[strings.Index(pk, "#R#")+3:] }

// see looks at a write that went through.
func (g *ghost) see(c *change) {
	var sg *sessionGhost
	if c.meta != nil {
		sg = g.session(c.ref)
		g.seeMeta(c, sg)
	}
	for i := range c.ops {
		op := &c.ops[i]
		switch sk := op.Key.SK; {
		case isStatus(op):
			g.seeStatus(c, sg, op)
		case isRow(op):
			g.seeRow(c, op)
		case strings.HasPrefix(sk, "IN#") && sg != nil:
			if op.Kind == table.Delete {
				delete(sg.mail, sk)
			} else {
				sg.mail[sk] = true
			}
		case strings.HasPrefix(sk, "C#"):
			g.seeLedger(c, sg, op)
		case strings.HasPrefix(sk, "E#"):
			g.seeEvents(c, op)
		case strings.HasPrefix(sk, "W#"):
			g.seeWaiter(c, op)
		}
	}
	if sg == nil {
		return
	}
	if c.m1.Owner == "" {
		sg.holder = actor{}
	}
	g.accounted(sg)
}

// seeMeta checks the hot item itself, and who may take the claim.
func (g *ghost) seeMeta(c *change, sg *sessionGhost) {
	m0, m1, s := &c.m0, &c.m1, g.s
	sg.meta = *m1
	if err := lanetest.CheckMeta(m1); err != nil {
		s.violatef("meta", "after %s of %s: %v", c.kind, c.by, err)
	}
	if c.pendN != int64(len(m1.Pending)) {
		s.violatef("meta", "%d runs wait, the count says %d", len(m1.Pending), c.pendN)
	}
	if m1.Token < m0.Token || m1.Seq < m0.Seq || m1.Head < m0.Head || m1.Cutoff < m0.Cutoff {
		s.violatef("meta", "token, accept sequence, head or cutoff went back in %s of %s", c.kind, c.by)
	}
	switch {
	case m1.Token > m0.Token:
		g.claimed(c, sg)
	case c.by == sg.holder:
		sg.renewed = s.now()
	}
	if m1.Cancel != "" && m1.Cancel != m0.Cancel && m1.Cancel != m0.Active {
		s.violatef("stop", "%s marks %q while %q is active", c.by, m1.Cancel, m0.Active)
	}
}

// claimed checks C1: from whom the claim may be taken, and for what.
func (g *ghost) claimed(c *change, sg *sessionGhost) {
	m0, m1, s := &c.m0, &c.m1, g.s
	now := time.Now()
	if m1.Token != m0.Token+1 {
		s.violatef("one writer", "the token jumped from %d to %d", m0.Token, m1.Token)
	}
	if m0.Owner != "" && now.Add(2*s.p.Skew).Before(m0.Lease) {
		s.violatef("one writer", "%s took the claim of %s, whose lease holds for %s more", c.by, sg.holder, m0.Lease.Sub(now))
	}
	if sg.died > 0 {
		g.recovered = append(g.recovered, s.now()-sg.died)
	}
	sg.holder, sg.renewed, sg.died = c.by, s.now(), 0
	switch {
	case m1.Active == "" || strings.HasPrefix(m1.Owner, "cmd:"):
	case m0.Active == "":
		i := slices.IndexFunc(m0.Pending, func(p session.Pending) bool { return p.Run == m1.Active })
		low, ok := m0.Lowest()
		switch {
		case i < 0:
			s.violatef("order", "%s starts %s, which does not wait", c.by, m1.Active)
		case m0.Pending[i].Seq <= m0.Cutoff:
			s.violatef("stop", "%s starts %s, which was stopped", c.by, m1.Active)
		case !ok || low.Run != m1.Active:
			s.violatef("order", "%s starts %s before %s", c.by, m1.Active, low.Run)
		case low.Mode == lane.Gather && now.Add(2*s.p.Skew).Before(m0.Debounce):
			s.violatef("texts", "%s starts %s, which waits for more of its sender for %s", c.by, m1.Active, m0.Debounce.Sub(now))
		}
		if r := g.runs[m1.Active]; r != nil {
			r.began = true
			if r.end != nil {
				s.violatef("terminal", "%s starts %s, which has ended", c.by, m1.Active)
			}
		}
	case m0.Active != m1.Active:
		s.violatef("order", "%s resumes %s while %s is active", c.by, m1.Active, m0.Active)
	case m0.Wake.After(now.Add(2*s.p.Skew)) && !m0.Marked():
		s.violatef("sleep", "%s resumes %s, which sleeps for %s more", c.by, m1.Active, m0.Wake.Sub(now))
	}
	if r := g.runs[m1.Active]; r != nil && !strings.HasPrefix(m1.Owner, "cmd:") {
		r.tries = m1.Attempt
		if m1.Stalled > 5 {
			s.violatef("rest", "attempt %d of %s without progress", m1.Stalled, m1.Active)
		}
	}
}

// died notes when the holder of a claim did.
func (g *ghost) died(p *proc) {
	for _, sg := range g.sessions {
		if sg.holder.p == p && sg.died == 0 {
			sg.died = time.Since(g.s.start)
		}
	}
}

// fenced checks C2: only the holder of the claim writes this.
func (g *ghost) fenced(c *change, sg *sessionGhost, what string) {
	if sg == nil {
		g.s.violatef("one writer", "%s writes %s of a session that nobody knows", c.by, what)
		return
	}
	holder := sg.holder
	if c.meta == nil || holder != c.by {
		g.s.violatef("one writer", "%s writes %s in %s, but %s has the claim", c.by, what, c.kind, holder)
	}
}

// seeStatus checks the record of a run.
func (g *ghost) seeStatus(c *change, sg *sessionGhost, op *table.Op) {
	short := shortOf(op.Key.PK)
	r := g.runs[short]
	if op.Kind == table.Put {
		g.accepted(c, sg, op, short)
		return
	}
	if r == nil {
		g.s.violatef("accepted", "%s changes the record of %s, which was never accepted", c.by, short)
		return
	}
	if v, ok := setTo(op, run.AttrState).(string); ok {
		r.state = run.State(v)
	}
	if v, ok := setTo(op, run.AttrInto).(string); ok {
		r.into = v
	} else if removes(op, run.AttrInto) {
		r.into = ""
	}
	out, ends := setTo(op, run.AttrOutcome).([]byte)
	switch {
	case ends:
		g.ended(c, sg, r, out)
	case c.kind == kCommit || c.kind == kRelease || c.kind == kStarted || c.kind == kDone:
		g.fenced(c, sg, "the record of "+r.id)
	}
}

// accepted notes a run.
func (g *ghost) accepted(c *change, sg *sessionGhost, op *table.Op, short string) {
	old := g.runs[short]
	if old != nil {
		g.s.violatef("accepted", "%s accepts %s once more", c.by, short)
		return
	}
	r := &runGhost{id: op.Item.Str("run"), state: run.State(op.Item.Str(run.AttrState)), seq: op.Item.Int("seq"), into: op.Item.Str(run.AttrInto), nums: make(map[int64]number)}
	r.s = sg
	if sg == nil {
		r.s = g.session(session.Ref{Tenant: session.DefaultTenant, Key: op.Item.Str("key")})
	}
	g.runs[short] = r
	if out := op.Item.Bytes(run.AttrOutcome); len(out) > 0 {
		r.stopped = true
		g.ended(c, nil, r, out)
		return
	}
	g.notStopped(c, r)
	r.gathers = slices.ContainsFunc(c.m1.Pending, func(p session.Pending) bool { return p.Run == short && p.Mode == lane.Gather })
	if r.state == run.Steered {
		switch {
		case c.m0.Active != r.into:
			g.s.violatef("steer", "%s is steered into %s while %q is active", r.id, r.into, c.m0.Active)
		case c.m0.Marked():
			g.s.violatef("steer", "%s is steered into %s, which is to end", r.id, r.into)
		case len(c.m0.Pending) > 0:
			g.s.violatef("order", "%s is steered past %d that wait", r.id, len(c.m0.Pending))
		}
	}
}

// notStopped checks K1: a frame that came before a stop of its connection is not
// accepted after it.
func (g *ghost) notStopped(c *change, r *runGhost) {
	for _, o := range g.s.ops {
		if o.runID != r.id || o.slot.cur != c.p || o.method == "chat.abort" || o.method == "agent.wait" {
			continue
		}
		all, one := c.m0.Stops[o.conn.id], c.m0.Stops[o.conn.id+"|"+r.id]
		if at := max(all, one); at >= o.frame {
			// Another request under the same key may have come later.
			for _, x := range g.s.ops {
				if x.runID == r.id && (x.conn != o.conn || x.frame > at) && x.begun && (x.method == "agent" || x.method == "chat.send") {
					return
				}
			}
			g.s.violatef("stop", "%s was accepted, though a later frame of its connection had stopped it", r.id)
		}
	}
}

// ended checks L4 and C7: a run ends once, by whoever may end it.
func (g *ghost) ended(c *change, sg *sessionGhost, r *runGhost, body []byte) {
	var out run.Outcome
	if err := json.Unmarshal(body, &out); err != nil {
		g.s.violatef("kit", "outcome: %v", err)
	}
	for _, p := range out.Payloads {
		out.Text += p.Text
	}
	if r.end != nil {
		g.s.violatef("terminal", "%s ends %s a second time: %s after %s", c.by, r.id, out.Kind, r.end.Kind)
		return
	}
	r.end, r.endStep, r.endAt = &out, g.s.steps, g.s.now()
	g.s.say2(r, &out)
	switch c.kind {
	case kTerminal:
		g.fenced(c, sg, "the end of "+r.id)
		if out.Kind == run.Aborted && !c.m0.Marked() {
			g.s.violatef("stop", "%s ends %s as aborted, which nobody stopped", c.by, r.id)
		}
	case kEndQueued, kAccept:
		if !slices.ContainsFunc(c.m0.Pending, func(p session.Pending) bool {
			return p.Run == shortID(r) || strings.HasPrefix(p.Run, "followup-overflow:")
		}) {
			g.s.violatef("terminal", "%s ends %s as waiting, which it is not", c.by, r.id)
		}
	default:
	}
}

func shortID(r *runGhost) string { return run.Short(r.id) }

func (s *Sim) say2(r *runGhost, out *run.Outcome) {
	s.notef("ghost", "%s has ended: %s %s%s", r.id, out.Kind, out.StopReason, out.ErrorKind)
}

// accounted checks that every accepted run of a session is somewhere: it waits, works,
// is in the mailbox, was taken by another one, or has ended.
func (g *ghost) accounted(sg *sessionGhost) {
	m := &sg.meta
	for short, r := range g.runs {
		if r.s != sg || r.end != nil {
			continue
		}
		var ok bool
		switch r.state {
		case run.Pending:
			ok = slices.ContainsFunc(m.Pending, func(p session.Pending) bool { return p.Run == short }) || m.Active == short
		case run.Started:
			ok = m.Active == short
		case run.Steered:
			ok = sg.mail[fmt.Sprintf("IN#%010d", r.seq)] && m.Active == r.into
		case run.Delivered:
			into := g.runs[r.into]
			ok = into != nil && (m.Active == r.into || slices.Contains(m.Unsettled, short) ||
				slices.ContainsFunc(m.Pending, func(p session.Pending) bool { return p.Run == r.into }))
		case run.Ended:
			ok = true
		}
		if !ok {
			g.s.violatef("accepted", "%s is lost: its record says %s, and the session knows nothing of it", r.id, r.state)
		}
	}
	if n := len(sg.mail); int64(n) != m.MailN {
		g.s.violatef("steer", "%d messages in the mailbox, the count says %d", n, m.MailN)
	}
}

// busy says whether any session has something left to do.
func (g *ghost) busy() bool {
	for _, sg := range g.sessions {
		if sg.meta.Busy {
			return true
		}
	}
	return false
}

// left says what is left, for a simulation that does not come to rest.
func (g *ghost) left() string {
	var b strings.Builder
	for key, sg := range g.sessions {
		m := &sg.meta
		if m.Busy {
			fmt.Fprintf(&b, "[%s owner %q active %q pending %d unsettled %v mail %d cutoff %d cancel %q wake %v] ",
				key, m.Owner, m.Active, len(m.Pending), m.Unsettled, m.MailN, m.Cutoff, m.Cancel, m.Wake)
		}
	}
	fmt.Fprintf(&b, "wake-ups %d, timers %d, dead letters %d", len(g.s.boxes.wakes), len(g.s.boxes.timers), len(g.s.boxes.dead))
	return b.String()
}

func (g *ghost) ends() map[string]int {
	out := make(map[string]int)
	for _, r := range g.runs {
		if r.end != nil {
			out[string(r.end.Kind)]++
		}
	}
	return out
}

// firstTime is true once for each name.
func (g *ghost) firstTime(name string) bool {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	was := g.once[name]
	g.once[name] = true
	return !was
}

// panicked notes a handler that broke, unless it is what the scenario is about.
func (g *ghost) panicked(p *proc, err error) {
	if pe, ok := asPanic(err); ok && pe.Kind != "fault.breakdown" {
		g.s.violatef("panic", "%s: %s\n%s", p.name, pe.Kind, pe.Stack)
	}
}

func asPanic(err error) (*queue.PanicError, bool) {
	pe, ok := err.(*queue.PanicError) //nolint:errorlint // Call returns it as it is
	return pe, ok
}
