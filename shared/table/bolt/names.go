package bolt

import "sync/atomic"

// names keeps the attribute names that were decoded last, so that the few hundred names
// that there are need not be allocated with every item. A place is found by a weak hash;
// two names that share one take turns in it, which costs what it cost without.
type names [512]atomic.Pointer[string]

var known names

// get is the name that is written in b.
func (n *names) get(b []byte) string {
	h := uint32(len(b))
	for _, c := range b {
		h = h*31 + uint32(c)
	}
	place := &n[h%uint32(len(n))]
	if kept := place.Load(); kept != nil && *kept == string(b) {
		return *kept
	}
	if len(b) > 64 {
		return string(b) // a key of a map that somebody filled, not one of ours
	}
	name := string(b)
	place.Store(&name)
	return name
}
