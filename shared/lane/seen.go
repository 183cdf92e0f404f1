package lane

import (
	"sync"

	"laneway/shared/session"
)

// maxSeen bounds the sessions whose accept sequence a process remembers.
const maxSeen = 4096

// seqCache remembers what a session's accept sequence was, so that a warm process
// can accept without reading first. It is a guess: the transaction's condition
// decides, and a wrong guess costs one more try.
type seqCache struct {
	mu sync.Mutex
	m  map[session.Ref]int64
}

// get gives a picture of META made of what is remembered; known is false, because
// pending runs and stops are not.
func (c *seqCache) get(ref session.Ref) (m session.Meta, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.Ref = ref
	if seq, ok := c.m[ref]; ok {
		m.Seq, m.Created = seq, 1
	}
	return m, false
}

func (c *seqCache) put(ref session.Ref, m session.Meta) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = make(map[session.Ref]int64)
	}
	if len(c.m) >= maxSeen {
		for old := range c.m { // any one: a lost guess costs little
			delete(c.m, old)
			break
		}
	}
	c.m[ref] = m.Seq
}
