package bolt

import (
	"hash/maphash"
	"time"

	"laneway/shared/queue"
)

// dedup remembers the deduplication ids of DedupWindow, by group as SQS does in
// high-throughput mode. It keeps 128 bits of keyed hash for each: a lane may see
// thousands a second, and ids are up to 256 bytes with their group. Not safe for
// concurrent use.
type dedup struct {
	seeds [2]maphash.Seed
	ids   map[[2]uint64]struct{}
	order fifo[dedupEntry]
}

type dedupEntry struct {
	key [2]uint64
	at  time.Time
}

func (d *dedup) init() {
	d.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	d.ids = make(map[[2]uint64]struct{})
}

// add reports whether the id is new, and remembers it then.
func (d *dedup) add(group, id string, now time.Time) bool {
	d.prune(now)
	var key [2]uint64
	for i, seed := range d.seeds {
		var h maphash.Hash
		h.SetSeed(seed)
		_, _ = h.WriteString(group)
		_ = h.WriteByte(0)
		_, _ = h.WriteString(id)
		key[i] = h.Sum64()
	}
	if _, ok := d.ids[key]; ok {
		return false
	}
	d.ids[key] = struct{}{}
	d.order.push(dedupEntry{key, now})
	return true
}

// prune forgets what is older than the window and says when the oldest that is
// left came, if any is.
func (d *dedup) prune(now time.Time) (oldest time.Time, left bool) {
	for {
		e, ok := d.order.peek()
		if !ok {
			return time.Time{}, false
		}
		if now.Sub(e.at) < queue.DedupWindow {
			return e.at, true
		}
		d.order.pop()
		delete(d.ids, e.key)
		if len(d.ids) == 0 {
			// A map keeps the room of its largest size; after a burst let it go.
			d.ids = make(map[[2]uint64]struct{})
			d.order = fifo[dedupEntry]{}
		}
	}
}
