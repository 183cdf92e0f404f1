// Package lineartest judges whether a table.Store is linearizable: several clients work
// on a few items at once, some answers get lost, and a checker (porcupine) looks for an
// order of all calls, each between its begin and its end, that a single map would give.
//
// Guarantees: a write whose answer was lost may have been done at any time behind its
// begin, or never; a conflict or a throttle is a write that was not done. Check also
// runs stores that are wrong on purpose, and fails where the checker takes them: so a
// history that passes says something. The seed of a history that fails is printed.
package lineartest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"laneway/shared/id"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
)

const (
	histories = 6
	// tries is how many histories a wrong store gets to be found out.
	tries   = 12
	clients = 5
	rounds  = 14 // calls of a client
	// thinking bounds the search for an order. It takes milliseconds.
	thinking = 30 * time.Second
)

// Check runs histories on a store, as it is and with lost answers, and on wrong ones
// that are made of it.
func Check(t *testing.T, store table.Store) {
	t.Helper()
	lossy := faulty.Config{Conflict: 0.05, Throttle: 0.02, LostRequest: 0.03, LostAnswer: 0.05, Repeated: 0.03, ReadThrottle: 0.02}
	for name, c := range map[string]faulty.Config{"no answer is lost": {}, "answers are lost": lossy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unknown := 0
			for range histories {
				c.Seed = rand.Uint64()
				h := record(t, faulty.New(store, c), c.Seed)
				unknown += h.unknown
				if got := porcupine.CheckOperationsTimeout(model(), h.calls, thinking); got != porcupine.Ok {
					t.Fatalf("seed %d: %s; the history:\n%s", c.Seed, got, h)
				}
			}
			if c.LostAnswer > 0 && unknown == 0 {
				t.Error("no answer was lost: the test says nothing")
			}
		})
	}
	for name, wrong := range wrongStores() {
		t.Run("refused: "+name, func(t *testing.T) {
			t.Parallel()
			for range tries {
				seed := rand.Uint64()
				h := record(t, wrong(store), seed)
				if porcupine.CheckOperationsTimeout(model(), h.calls, thinking) == porcupine.Illegal {
					return
				}
			}
			t.Errorf("%d histories of a store that is wrong were taken", tries)
		})
	}
}

// partition is a part of the key space that no other history uses.
func partition() string { return "linear#" + id.UUID() }
