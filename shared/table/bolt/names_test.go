package bolt

import (
	"strconv"
	"strings"
	"sync"
	"testing"
)

// However many names share a place, and whoever asks beside, each is itself.
func TestNamesAreNeverMixedUp(t *testing.T) {
	t.Parallel()
	var n names
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 4 * len(n) {
				for _, want := range []string{strconv.Itoa(i), "attribute", strings.Repeat("long", 20) + strconv.Itoa(i%3), ""} {
					if got := n.get([]byte(want)); got != want {
						t.Errorf("%q for %q", got, want)
					}
				}
			}
		})
	}
	wg.Wait()
}

//nolint:paralleltest // allocations are counted of all goroutines
func TestAKnownNameIsNotAllocated(t *testing.T) {
	var n names
	b := []byte("attribute")
	n.get(b)
	if got := testing.AllocsPerRun(100, func() { n.get(b) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
