package crash

import (
	"context"
	"os"
	"strings"
	"time"

	"laneway/shared/protocol"
)

// settleWithin is how long the last runs may take once nothing is killed any more.
const settleWithin = 60 * time.Second

// check waits for the end of every run that was accepted and looks at all traces.
func (w *world) check(effects string) {
	t := w.t
	ctx, cancel := context.WithTimeout(context.Background(), 2*settleWithin)
	defer cancel()
	c, err := w.dial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ended := 0
	sessions := map[string][]*told{}
	for _, r := range w.runs {
		sessions[r.session] = append(sessions[r.session], r)
		if !r.accepted {
			continue
		}
		var first, again protocol.Wait
		window := settleWithin.Milliseconds()
		if err := c.Call(ctx, "agent.wait", protocol.AgentWaitParams{RunID: r.id, TimeoutMs: &window}, &first); err != nil {
			t.Fatalf("wait for %s: %v", r.id, err)
		}
		if first.EndedAt == 0 {
			t.Errorf("%s was accepted and never ended: %+v", r.id, first)
			continue
		}
		ended++
		now := int64(0)
		if err := c.Call(ctx, "agent.wait", protocol.AgentWaitParams{RunID: r.id, TimeoutMs: &now}, &again); err != nil {
			t.Fatal(err)
		}
		if again.Status != first.Status || again.EndedAt != first.EndedAt {
			t.Errorf("%s ended twice: %+v, then %+v", r.id, first, again)
		}
		if r.final != "" && r.final != first.Status {
			t.Errorf("%s: the caller was told %q, a waiter %q", r.id, r.final, first.Status)
		}
	}
	for key, runs := range sessions {
		w.checkHistory(ctx, c, key, runs)
	}
	done := w.checkEffects(effects)
	gaveUp := int(w.gaveUp.Load())
	t.Logf("%d runs, %d accepted and ended, %d of them given up, %d side effects, %d model calls", len(w.runs), ended, gaveUp, done, len(w.model.Requests()))
	if ended == gaveUp {
		t.Error("nothing ran: the test says nothing")
	}
}

// caller is what checkHistory needs of a connection.
type caller interface {
	Call(ctx context.Context, method string, params, out any) error
}

// checkHistory wants each accepted message once, in the order in which its client
// sent them, and each answered once.
func (w *world) checkHistory(ctx context.Context, c caller, key string, runs []*told) {
	t := w.t
	limit, offset := int64(1000), int64(0)
	var users []string
	answers := map[string]int{}
	for {
		var h protocol.History
		if err := c.Call(ctx, "chat.history", protocol.ChatHistoryParams{SessionKey: key, Limit: &limit, Offset: &offset}, &h); err != nil {
			t.Errorf("history of %s: %v", key, err)
			return
		}
		var page []string
		for _, row := range h.Messages {
			if id, ok := strings.CutSuffix(row.IdempotencyKey, ":user"); ok {
				page = append(page, id)
			}
			if row.Role == "assistant" && row.StopReason == "stop" {
				answers[row.Openclaw.RunID]++
			}
		}
		users = append(page, users...)
		if !h.HasMore {
			break
		}
		offset = h.NextOffset
	}
	at := 0
	for _, r := range runs {
		if at < len(users) && users[at] == r.id {
			at++
		} else if r.accepted {
			t.Errorf("%s: message of %s is missing, doubled or out of order at row %d of %v", key, r.id, at, users)
			return
		}
		if r.final == "ok" && answers[r.id] != 1 {
			t.Errorf("%s: %s has %d answers", key, r.id, answers[r.id])
		}
	}
	if at != len(users) {
		t.Errorf("%s: messages that nobody sent, or twice: %v", key, users[at:])
	}
}

// checkEffects wants no side effect twice.
func (w *world) checkEffects(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		w.t.Errorf("no side effect at all: %v", err)
		return 0
	}
	seen := map[string]int{}
	for line := range strings.FieldsSeq(string(b)) {
		seen[line]++
	}
	for id, n := range seen {
		if n > 1 {
			w.t.Errorf("side effect of %s happened %d times", id, n)
		}
	}
	return len(seen)
}
