package clock

import (
	"strings"
	"time"
)

// Short is a duration as Go writes it, without seconds and minutes that are zero at its
// end: 2h, not 2h0m0s.
func Short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
