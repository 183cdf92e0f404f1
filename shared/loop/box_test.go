package loop_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"laneway/shared/clock"
	"laneway/shared/queue"
)

// box is the queue in the hands of a test: nothing is delivered but what the test
// takes out and delivers; it may lose a letter, or deliver it twice.
type box struct {
	clock clock.Clock

	mu    sync.Mutex
	list  []letter // not taken
	all   []letter // of all times
	dedup map[string]time.Time
}

// letter is a wake-up or a timer.
type letter struct {
	lane         queue.Lane
	group, dedup string
	body         []byte
	due          time.Time
	timer        bool
}

func (b *box) Send(_ context.Context, lane queue.Lane, group, dedup string, body []byte) error {
	if err := queue.Check(group, dedup, body); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	if at, known := b.dedup[dedup]; known && now.Sub(at) < queue.DedupWindow {
		return nil
	}
	if b.dedup == nil {
		b.dedup = make(map[string]time.Time)
	}
	b.dedup[dedup] = now
	b.add(letter{lane: lane, group: group, dedup: dedup, body: body, due: now})
	return nil
}

func (b *box) After(_ context.Context, delay time.Duration, body []byte) error {
	if err := queue.CheckDelay(delay); err != nil {
		return err
	}
	if err := queue.CheckBody(body); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(letter{body: body, due: b.clock.Now().Add(delay), timer: true})
	return nil
}

func (b *box) add(l letter) { b.list, b.all = append(b.list, l), append(b.all, l) }

// take gives what is due.
func (b *box) take() []letter {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []letter
	now := b.clock.Now()
	b.list = slices.DeleteFunc(b.list, func(l letter) bool {
		due := !l.due.After(now)
		if due {
			out = append(out, l)
		}
		return due
	})
	return out
}

// back puts a letter that was not handled back.
func (b *box) back(l letter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, l)
}

// lose forgets everything that was not delivered.
func (b *box) lose() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = nil
}
