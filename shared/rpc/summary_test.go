package rpc_test

import (
	"slices"
	"strings"
	"testing"

	"laneway/shared/protocol"
)

// TestRuntime27_AnAbortFollowsAMessageIntoItsSummary: each row aborts messages that are
// lines of a summary. Their lines are not told to the model, and the summary is not there
// without a line.
func TestRuntime27_AnAbortFollowsAMessageIntoItsSummary(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		abort []string
		more  bool   // one more message makes room after the aborts
		tells string // the summary, as the model gets it; empty: none
	}{
		{"none", nil, false, "[Queue overflow] Dropped 2 messages due to cap.\nSummary:\n- say b\n- say c"},
		{"the first", []string{"b"}, false, "[Queue overflow] Dropped 1 message due to cap.\nSummary:\n- say c"},
		{"the last", []string{"c"}, false, "[Queue overflow] Dropped 1 message due to cap.\nSummary:\n- say b"},
		{"one, then another overflow", []string{"c"}, true, "[Queue overflow] Dropped 2 messages due to cap.\nSummary:\n- say b\n- say d"},
		{"both", []string{"b", "c"}, false, ""},
		{"both, then another overflow", []string{"c", "b"}, true, "[Queue overflow] Dropped 1 message due to cap.\nSummary:\n- say d"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, w *world, c, l *client) {
				t.Helper()
				c.ok("sessions.patch", obj{"key": "s", "queueCap": 2, "queueDebounceMs": 0, "queueMode": "followup", "queueDrop": "summarize"}, nil)
				c.say("hold 1", "a", "")
				w.model.waitFor(t, "hold 1")
				sent := []string{"b", "c", "d", "e"}
				for _, id := range sent {
					c.say("say "+id, id, "")
				}
				for _, id := range row.abort {
					for _, aborts := range []bool{true, false} { // the second time it is not there any more
						var ab protocol.ChatAborted
						c.ok("chat.abort", obj{"sessionKey": "s", "runId": id}, &ab)
						if ab.Aborted != aborts || aborts != slices.Equal(ab.RunIDs, []string{id}) {
							t.Errorf("%s: %+v", id, ab)
						}
					}
					got := c.waited(id)
					if got.Status != "error" || got.StopReason != "rpc" {
						t.Errorf("%s: %+v", id, got)
					}
					l.find("the end of "+id, 1, chatEvent("aborted", id))
				}
				if row.more {
					c.say("say f", "f", "")
					sent = append(sent, "f")
				}
				w.model.let("hold 1")
				for _, id := range sent {
					if slices.Contains(row.abort, id) {
						continue
					}
					if got := c.waited(id); got.Status != "ok" {
						t.Errorf("%s: %+v", id, got)
					}
				}
				w.idle(key)
				var told []string
				for _, text := range w.model.texts() {
					if strings.HasPrefix(text, "[Queue overflow]") {
						told = append(told, text)
					}
				}
				if got := strings.Join(told, "\n"); got != row.tells {
					t.Errorf("the model was told %q, want %q", got, row.tells)
				}
			})
		})
	}
}
