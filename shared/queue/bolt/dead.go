package bolt

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"go.etcd.io/bbolt"

	"laneway/shared/queue"
)

// bucketDead maps a sequence (8 bytes big-endian) to a dead letter in JSON.
var bucketDead = []byte("queue.dead")

const (
	// DeadLetterRetention is how long a dead letter is kept, as on SQS.
	DeadLetterRetention = 14 * 24 * time.Hour
	// buryTimeout bounds the write of a dead letter. It has a context of its own:
	// the message's own may be over by then.
	buryTimeout = 5 * time.Second
)

// bury makes a message a dead letter, takes a timer off the disk with it, and
// forgets letters that are too old.
func (q *Queue) bury(m message) error {
	now := q.cfg.Clock.Now().UTC()
	value, err := json.Marshal(queue.DeadLetter{
		ID: m.ID, Lane: m.Lane, Group: m.Group, Body: m.Body, Receives: m.Receives, At: now,
	})
	if err != nil {
		return fmt.Errorf("queue/bolt: dead letter: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), buryTimeout)
	defer cancel()
	return q.commit.do(ctx, func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketDead)
		seq, err := b.NextSequence()
		if err != nil {
			return err
		}
		if err := b.Put(binary.BigEndian.AppendUint64(nil, seq), value); err != nil {
			return err
		}
		if m.key != nil {
			if err := tx.Bucket(bucketTimers).Delete(m.key); err != nil {
				return err
			}
		}
		return forget(b, now.Add(-DeadLetterRetention))
	})
}

// forget removes letters from before t; they lie in order of age.
func forget(b *bbolt.Bucket, t time.Time) error {
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.First() {
		var d queue.DeadLetter
		if err := json.Unmarshal(v, &d); err == nil && !d.At.Before(t) {
			return nil
		}
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// DeadLetters implements queue.DeadLetterStore. The empty lane is the timers.
func (q *Queue) DeadLetters(ctx context.Context, lane queue.Lane, limit int) ([]queue.DeadLetter, error) {
	if err := q.checkDead(ctx, lane); err != nil {
		return nil, err
	}
	var out []queue.DeadLetter
	err := q.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketDead).Cursor()
		for k, v := c.First(); k != nil && len(out) < limit; k, v = c.Next() {
			var d queue.DeadLetter
			if err := json.Unmarshal(v, &d); err != nil {
				return err
			}
			if d.Lane == lane {
				out = append(out, d)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("queue/bolt: dead letters: %w", err)
	}
	return out, nil
}

// Redrive implements queue.DeadLetterStore. Timers fire at once.
func (q *Queue) Redrive(ctx context.Context, lane queue.Lane) (int, error) {
	if err := q.checkDead(ctx, lane); err != nil {
		return 0, err
	}
	if lane == "" {
		return q.redriveTimers(ctx)
	}
	var letters []queue.DeadLetter
	err := q.commit.do(ctx, func(tx *bbolt.Tx) error {
		letters = nil
		return exhume(tx, func(d queue.DeadLetter) bool {
			if d.Lane == lane {
				letters = append(letters, d)
			}
			return d.Lane == lane
		})
	})
	if err != nil {
		return 0, fmt.Errorf("queue/bolt: redrive: %w", err)
	}
	l := q.lanes[lane]
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range letters {
		l.push(message{Message: queue.Message{ID: d.ID, Lane: lane, Group: d.Group, Body: d.Body}})
	}
	l.dispatch()
	return len(letters), nil
}

// redriveTimers moves letters of timers into the bucket of live ones, in one
// transaction, so that a crash neither loses nor keeps one.
func (q *Queue) redriveTimers(ctx context.Context) (int, error) {
	letters, err := q.DeadLetters(ctx, "", math.MaxInt)
	if err != nil || len(letters) == 0 {
		return 0, err
	}
	bodies := make([][]byte, len(letters))
	moved := make(map[string]bool, len(letters))
	for i, d := range letters {
		bodies[i], moved[d.ID] = d.Body, true
	}
	err = q.after(ctx, q.cfg.Clock.Now(), bodies, func(tx *bbolt.Tx) error {
		return exhume(tx, func(d queue.DeadLetter) bool { return d.Lane == "" && moved[d.ID] })
	})
	if err != nil {
		return 0, err
	}
	return len(letters), nil
}

// Purge implements queue.DeadLetterStore.
func (q *Queue) Purge(ctx context.Context, lane queue.Lane) (int, error) {
	if err := q.checkDead(ctx, lane); err != nil {
		return 0, err
	}
	n := 0
	err := q.commit.do(ctx, func(tx *bbolt.Tx) error {
		n = 0
		return exhume(tx, func(d queue.DeadLetter) bool {
			if d.Lane == lane {
				n++
			}
			return d.Lane == lane
		})
	})
	if err != nil {
		return 0, fmt.Errorf("queue/bolt: purge: %w", err)
	}
	return n, nil
}

// exhume removes the letters that which says yes to, oldest first.
func exhume(tx *bbolt.Tx, which func(queue.DeadLetter) bool) error {
	b := tx.Bucket(bucketDead)
	var keys [][]byte
	err := b.ForEach(func(k, v []byte) error {
		var d queue.DeadLetter
		if err := json.Unmarshal(v, &d); err != nil {
			return err
		}
		if which(d) {
			keys = append(keys, k)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return removeAll(b, keys)
}

func (q *Queue) checkDead(ctx context.Context, lane queue.Lane) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if lane != "" && q.lanes[lane] == nil {
		return fmt.Errorf("%w: no lane %q", queue.ErrInvalid, lane)
	}
	if q.isClosed() {
		return queue.ErrClosed
	}
	return nil
}
