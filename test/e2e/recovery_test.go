package e2e

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"laneway/shared/id"
	"laneway/shared/protocol"
	"laneway/test/mockmodel"
)

// TestStores_RecoveryWithDefaultSettings: of two processes over the same stores the one
// that has a run dies in mid-stream. The other finds it by its lease alone, and the reply
// goes on within 90 seconds (R3), LANEWAY_RECOVERY times.
func TestStores_RecoveryWithDefaultSettings(t *testing.T) {
	on(t)
	times, err := strconv.Atoi(os.Getenv("LANEWAY_RECOVERY"))
	if err != nil {
		t.Skip("not run: recovery with default leases takes minutes and needs LANEWAY_RECOVERY=3 (make recovery)")
	}
	const most = 90 * time.Second
	f := newFleet(t)
	holder := f.serve(t)
	var took []time.Duration
	for n := range times {
		message := fmt.Sprintf("recover %d.", n)
		f.model.Script(
			mockmodel.Reply{Match: message, Text: []string{"lost ", "words"}, Stall: true},
			mockmodel.Reply{Match: message, Text: []string{"back ", "again"}},
		)
		l := f.at(t, holder).dialAgain(t)
		runID := id.UUID()
		l.call(t, "agent", protocol.AgentParams{Message: message, SessionKey: "agent:main:recovery", IdempotencyKey: runID}, nil)
		l.await(within(t, patience), t, "a delta", func(e event) bool { return e.RunID == runID && e.Stream == protocol.StreamAssistant })
		other := f.serve(t)
		killed := time.Now()
		if err := holder.Kill(); err != nil {
			t.Fatal(err)
		}
		w := f.at(t, other).dialAgain(t).wait(t, runID, 2*most)
		if w.Status != protocol.StatusOK || w.TerminalReply == nil || w.TerminalReply.Text != "back again" {
			t.Fatalf("%+v", w)
		}
		took = append(took, time.UnixMilli(w.EndedAt).Sub(killed))
		holder = other
	}
	figure(t, "stores", "end of a run after kill -9, default leases", took)
	if longest := took[len(took)-1]; longest > most {
		t.Errorf("it took %s", longest)
	}
}

// dialAgain connects as clients do that were cut off: again, until it works. A greeting
// that the dead process had taken from the queue comes when it is visible again.
func (g gateway) dialAgain(t *testing.T) (l *listener) {
	t.Helper()
	poll(t, patience, "no connection", func() bool {
		var err error
		l, err = g.connect(within(t, patience))
		return err == nil
	})
	t.Cleanup(l.Close)
	return l
}
