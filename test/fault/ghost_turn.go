package fault

import (
	"encoding/json"
	"fmt"
	"strings"

	"laneway/shared/lane"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/table"
	"laneway/shared/tool"
)

// callGhost is a tool call as it really went.
type callGhost struct {
	key     string // run/step/index, as the tool gets it
	begun   actor  // that wrote "started"
	effects int
	effect  tool.Effect
	by      []actor
	result  string
}

// trusted checks C3: nothing is started by somebody who may have lost the claim.
func (g *ghost) trusted(p *proc, sg *sessionGhost, what string) {
	if sg == nil {
		return
	}
	age, trust := g.s.now()-sg.renewed, g.s.times().WithDefaults().Trust
	if sg.holder == p.actor() {
		if age > trust+2*g.s.p.Skew {
			g.s.violatef("trust", "%s begins %s %s after its last renewal", p.actor(), what, age)
		}
		return
	}
	// Somebody else has the claim: it could not know only if it renewed lately.
	if age > trust {
		g.s.violatef("trust", "%s begins %s, but %s has had the claim for %s", p.actor(), what, sg.holder, age)
	}
}

// asks checks what a model is asked: by whom, and whether a provider would take it.
func (g *ghost) asksModel(p *proc, runID string, r model.Request) {
	if why := Invalid(r.Messages); why != "" {
		g.s.violatef("transcript", "%s asks a model what a provider refuses: %s", p.actor(), why)
	}
	taken := map[string]bool{}
	for _, m := range r.Messages {
		for _, b := range m.Content {
			if b.Type == model.ToolCall && taken[b.ID] {
				g.s.violatef("transcript", "%s asks a model what a provider refuses: two calls have the id %s", p.actor(), b.ID)
			}
			taken[b.ID] = true
		}
	}
	if rg := g.runs[runID]; rg != nil {
		g.trusted(p, rg.s, "a model call for "+runID)
	}
}

// Invalid says what a provider would refuse in a conversation: each call has exactly
// one result, directly behind its message.
func Invalid(messages []model.Message) string {
	open := map[string]bool{}
	for i, m := range messages {
		if m.Role != model.ToolResult {
			if len(open) > 0 {
				return fmt.Sprintf("message %d comes before the results of %v", i, open)
			}
		} else if !open[m.ToolCallID] {
			return fmt.Sprintf("message %d is a result without a call", i)
		}
		delete(open, m.ToolCallID)
		for _, b := range m.Content {
			if b.Type == model.ToolCall {
				open[b.ID] = true
			}
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("calls without a result: %v", open)
	}
	return ""
}

func (g *ghost) call(key string) *callGhost {
	c := g.calls[key]
	if c == nil {
		c = &callGhost{key: key}
		g.calls[key] = c
	}
	return c
}

// begins checks a tool that is about to do something.
func (g *ghost) begins(p *proc, c tool.Call) {
	runID, _, _ := strings.Cut(c.Key, "/")
	r := g.runs[runID]
	if r == nil {
		g.s.violatef("effect", "%s runs a tool for %s, which nobody knows", p.actor(), runID)
		return
	}
	g.trusted(p, r.s, "tool "+c.Key)
	if k := g.call(c.Key); k.begun.p == nil {
		g.s.violatef("effect", "%s runs %s before anything in the ledger says so", p.actor(), c.Key)
	}
	if r.end != nil && r.s.holder == p.actor() {
		g.s.violatef("effect", "%s runs %s after the end of its run", p.actor(), c.Key)
	}
}

// effect counts what a tool really did.
func (g *ghost) effect(p *proc, spec tool.Spec, c tool.Call) {
	k := g.call(c.Key)
	k.effects++
	k.effect, k.by = spec.Effect, append(k.by, p.actor())
	if k.effects > 1 && spec.Effect == tool.Unsafe {
		g.s.violatef("effect", "%s was done %d times, by %v", c.Key, k.effects, k.by)
	}
}

// seeLedger notes that a call is begun, or done.
func (g *ghost) seeLedger(c *change, sg *sessionGhost, op *table.Op) {
	if c.kind == kExpire {
		return
	}
	g.fenced(c, sg, "the ledger")
	var stepNo int64
	var index int
	if _, err := fmt.Sscanf(op.Key.SK, "C#%d#%d", &stepNo, &index); err != nil {
		return
	}
	k := g.call(fmt.Sprintf("%s/%d/%d", shortOf(op.Key.PK), stepNo, index))
	if ledgerState(op) == "started" {
		k.begun = c.by
	}
}

// seeRow checks a row of the transcript: who writes it, and what it says.
func (g *ghost) seeRow(c *change, op *table.Op) {
	sg := g.ofRow(op.Key.PK)
	g.fenced(c, sg, "a row")
	if sg == nil || op.Kind != table.Put {
		return
	}
	e := decodeRow(op)
	switch model.Role(e.Role) {
	case model.User:
		for _, id := range said(e.text()) {
			if r := g.runs[id]; r != nil {
				if r.users++; r.users > 1 {
					g.s.violatef("order", "the message of %s is in the conversation twice", id)
				}
				if r.stopped {
					g.s.violatef("stop", "%s was accepted as stopped, and its message is in the conversation", id)
				}
				g.inOrder(sg, r)
				g.whole(c, r)
			}
		}
	case model.ToolResult:
		g.seeResult(c, e)
	case model.Assistant:
	}
}

// row is what the kit reads of a row.
type row struct {
	RunID   string `json:"runId"`
	Role    string `json:"role"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	CallID  string `json:"toolCallId"`
	IsError bool   `json:"isError"`
	Details struct {
		Status string `json:"status"`
	} `json:"details"`
}

func (r *row) text() string {
	var b strings.Builder
	for _, c := range r.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}

func decodeRow(op *table.Op) row {
	var e row
	for _, v := range op.Item {
		if b, ok := v.([]byte); ok && json.Unmarshal(b, &e) == nil && e.Role != "" {
			return e
		}
	}
	return e
}

// said lists the runs whose messages are in a text.
func said(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, "say ") {
		if id, _, ok := strings.Cut(part, " plan="); ok && !strings.ContainsAny(id, " \n") {
			out = append(out, id)
		}
	}
	return out
}

// inOrder checks O1: messages stand in the order in which they were accepted.
func (g *ghost) inOrder(sg *sessionGhost, r *runGhost) {
	if r.seq <= sg.head {
		g.s.violatef("order", "%s (accepted as %d) came into the conversation behind %d", r.id, r.seq, sg.head)
	}
	sg.head = r.seq
}

// whole checks that texts that wait behind one of their sender are in one turn with it.
// One that was stopped stands alone.
func (g *ghost) whole(c *change, r *runGhost) {
	if c.kind == kTerminal && outcomeOf(c.ops) == run.Aborted {
		return
	}
	if low, ok := c.m1.Lowest(); r.gathers && r.into == "" && ok && low.Mode == lane.Gather {
		g.s.violatef("texts", "%s begins its turn without %s, which was written right behind it", r.id, low.Run)
	}
}

// seeResult checks that an outcome is called unknown only where somebody died, froze or
// was cut between "started" and the result.
func (g *ghost) seeResult(c *change, e row) {
	if e.Details.Status != "unknown" {
		return
	}
	for key, k := range g.calls {
		if !strings.HasPrefix(key, e.RunID+"/") || k.begun.p == nil || k.result != "" {
			continue
		}
		if k.begun != c.by && k.begun.p.hurt == 0 && !k.begun.p.dead {
			g.s.violatef("effect", "the outcome of %s is called unknown by %s, though nothing happened to %s", key, c.by, k.begun)
		}
	}
}

// rescued checks that the watchdog is not needed where nothing went wrong: a session
// that it wakes must have a wake-up that waits for a free runner.
func (g *ghost) rescued(key string) {
	if !g.s.p.Eager || g.s.lastFault > 0 {
		return
	}
	for _, m := range g.s.boxes.wakes {
		if w, err := lane.ParseWakeup(m.body); err == nil && w.Key == key && !m.held {
			return
		}
	}
	g.s.violatef("stall", "nothing went wrong, and yet only the watchdog could go on: %s", g.left())
}

// poisoned notes a run that kills whoever works on it.
func (g *ghost) poisoned(runID string) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	g.poison[runID] = true
}
