package fault

import (
	"fmt"
	"slices"
	"time"
)

// distribution says how times are spread.
func distribution(took []time.Duration) string {
	if len(took) == 0 {
		return "none"
	}
	took = slices.Sorted(slices.Values(took))
	at := func(part float64) time.Duration {
		return took[int(part*float64(len(took)-1))].Truncate(time.Millisecond)
	}
	return fmt.Sprintf("%d: least %s, median %s, 90 %% %s, 99 %% %s, most %s", len(took), at(0), at(.5), at(.9), at(.99), at(1))
}
