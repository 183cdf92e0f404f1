package bolt

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"laneway/shared/clock"
	"laneway/shared/meter"
	"laneway/shared/queue"
)

// bucketTimers maps due time (milliseconds) and a sequence, 8 bytes big-endian
// each, to the body.
var bucketTimers = []byte("queue.timers")

const (
	// cleanAfter is how long a timer that is done stays on disk at most while
	// the process lives. Its removal rides with the next write if one comes.
	cleanAfter = time.Second
	// maxSpent bounds the removals of one transaction.
	maxSpent = 4096
)

// After implements queue.Timers: when it returns, the timer is on disk.
func (q *Queue) After(ctx context.Context, delay time.Duration, body []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := queue.CheckDelay(delay); err != nil {
		return err
	}
	if err := queue.CheckBody(body); err != nil {
		return err
	}
	if q.isClosed() {
		return queue.ErrClosed
	}
	meter.From(ctx).Add(meter.QueueCalls, queue.Requests(len(body)))
	return q.after(ctx, q.cfg.Clock.Now().Add(delay), [][]byte{append([]byte(nil), body...)}, nil)
}

// after stores timers that are due at one time and starts them; also runs in the
// same transaction.
func (q *Queue) after(ctx context.Context, due time.Time, bodies [][]byte, also func(*bbolt.Tx) error) error {
	keys := make([][]byte, len(bodies))
	gone := q.spent.take()
	err := q.commit.do(ctx, func(tx *bbolt.Tx) error {
		if also != nil {
			if err := also(tx); err != nil {
				return err
			}
		}
		b := tx.Bucket(bucketTimers)
		for i, body := range bodies {
			seq, err := b.NextSequence()
			if err != nil {
				return err
			}
			if keys[i], err = timerKey(due, seq); err != nil {
				return err
			}
			if err := b.Put(keys[i], body); err != nil {
				return err
			}
		}
		return removeAll(b, gone)
	})
	if err != nil {
		q.spent.add(gone...)
		return fmt.Errorf("queue/bolt: timer: %w", err)
	}
	for i, body := range bodies {
		q.arm(due, keys[i], body)
	}
	return nil
}

func (q *Queue) arm(due time.Time, key, body []byte) {
	g := &group{messages: []message{{Message: queue.Message{ID: fmt.Sprintf("timer-%x", key), Body: body}, key: key}}}
	q.alarms.at(due, func(time.Time) { q.timers.due(g) })
}

// load makes the buckets and arms what is on disk.
func (q *Queue) load() error {
	err := q.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketTimers, bucketDead} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("queue/bolt: buckets: %w", err)
	}
	return q.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketTimers).ForEach(func(k, v []byte) error {
			if len(k) != 16 {
				return fmt.Errorf("queue/bolt: a timer's key has %d bytes", len(k))
			}
			var ms int64
			if _, err := binary.Decode(k, binary.BigEndian, &ms); err != nil {
				return err
			}
			q.arm(clock.FromMillis(ms), append([]byte(nil), k...), append([]byte(nil), v...))
			return nil
		})
	})
}

// timerKey rounds up: a timer is never early, after a restart neither.
func timerKey(due time.Time, seq uint64) ([]byte, error) {
	ms := max(clock.Millis(due.Add(time.Millisecond-time.Nanosecond)), 1)
	k, err := binary.Append(make([]byte, 0, 16), binary.BigEndian, ms)
	if err != nil {
		return nil, err
	}
	return binary.BigEndian.AppendUint64(k, seq), nil
}

func removeAll(b *bbolt.Bucket, keys [][]byte) error {
	for _, k := range keys {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// spent is the keys of timers that are done. Were they removed one by one, every
// timer would cost a second fsync; a crash before the removal only fires them
// again, which the port allows.
type spent struct {
	some chan struct{}

	mu   sync.Mutex
	keys [][]byte
}

func (s *spent) init() { s.some = make(chan struct{}, 1) }

func (s *spent) add(keys ...[]byte) {
	if len(keys) == 0 {
		return
	}
	s.mu.Lock()
	s.keys = append(s.keys, keys...)
	s.mu.Unlock()
	select {
	case s.some <- struct{}{}:
	default:
	}
}

func (s *spent) take() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.keys), maxSpent)
	out := s.keys[:n:n]
	s.keys = s.keys[n:]
	return out
}

// clean removes spent timers a moment after they are done, until ctx ends, and
// then the rest.
func (q *Queue) clean(ctx context.Context) {
	for {
		select {
		case <-q.spent.some:
		case <-ctx.Done():
			return
		}
		// A failed sleep means the end: Close, or the next start, removes them.
		if clock.Sleep(ctx, q.cfg.Clock, cleanAfter) != nil {
			return
		}
		if err := q.flush(ctx); err != nil && ctx.Err() == nil {
			q.cfg.Log.Warn("queue timers could not be removed", "error", err)
		}
	}
}

// flush removes all spent timers from disk.
func (q *Queue) flush(ctx context.Context) error {
	for {
		gone := q.spent.take()
		if len(gone) == 0 {
			return nil
		}
		err := q.commit.do(ctx, func(tx *bbolt.Tx) error { return removeAll(tx.Bucket(bucketTimers), gone) })
		if err != nil {
			q.spent.add(gone...)
			return fmt.Errorf("queue/bolt: remove timers: %w", err)
		}
	}
}
