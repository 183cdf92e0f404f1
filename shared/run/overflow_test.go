package run_test

import (
	"testing"

	"laneway/shared/run"
)

// TestRuntime27_ARemovedMessageTakesItsOwnLine: also where the oldest lines were elided, which
// are counted all the same.
func TestRuntime27_ARemovedMessageTakesItsOwnLine(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, remove, want string }{
		{"elided", "a", "[Queue overflow] Dropped 3 messages due to cap.\nSummary:\n- say c\n- say d"},
		{"the oldest line", "c", "[Queue overflow] Dropped 3 messages due to cap.\nSummary:\n- say d"},
		{"the newest line", "d", "[Queue overflow] Dropped 3 messages due to cap.\nSummary:\n- say c"},
		{"not in it", "x", "[Queue overflow] Dropped 4 messages due to cap.\nSummary:\n- say c\n- say d"},
	} {
		var o run.Overflow
		for _, id := range []string{"a", "b", "c", "d"} {
			o.Add(run.Status{Ref: run.Ref{Run: id}, Input: run.Input{Message: "say " + id}}, 2)
		}
		if removed := o.Remove(row.remove); removed != (row.remove != "x") || o.Text() != row.want || o.Remove(row.remove) {
			t.Errorf("%s: %v, %q, want %q", row.name, removed, o.Text(), row.want)
		}
	}
}
