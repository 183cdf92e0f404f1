package bolt

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"laneway/shared/clock"
)

// alarms calls functions when their time has come, never early: one goroutine
// (that of run) and a heap, however many there are. The functions must be short.
type alarms struct {
	clock clock.Clock
	wake  chan struct{} // a sign that the first alarm changed

	mu    sync.Mutex
	waits alarmHeap
}

type alarm struct {
	at   time.Time
	fire func(now time.Time)
}

func (a *alarms) init(c clock.Clock) {
	a.clock = c
	a.wake = make(chan struct{}, 1)
}

// at asks for fire to be called by run at t or soon after.
func (a *alarms) at(t time.Time, fire func(now time.Time)) {
	a.mu.Lock()
	heap.Push(&a.waits, alarm{t, fire})
	first := a.waits.first().at.Equal(t)
	a.mu.Unlock()
	if first {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// run fires alarms until ctx ends.
func (a *alarms) run(ctx context.Context) {
	for ctx.Err() == nil {
		now := a.clock.Now()
		due, next, some := a.take(now)
		for _, d := range due {
			d.fire(now)
		}
		if len(due) > 0 {
			continue
		}
		var timer <-chan time.Time
		if some {
			timer = a.clock.After(next.Sub(now))
		}
		select {
		case <-ctx.Done():
		case <-a.wake:
		case <-timer:
		}
	}
}

// take removes a bounded number of due alarms, and gives the time of the next.
func (a *alarms) take(now time.Time) (due []alarm, next time.Time, some bool) {
	const most = 256 // so that the end of ctx is seen in a flood
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.waits.Len() > 0 && len(due) < most {
		if a.waits.first().at.After(now) {
			return due, a.waits.first().at, true
		}
		w, _ := heap.Pop(&a.waits).(alarm)
		due = append(due, w)
	}
	return due, time.Time{}, false
}

// alarmHeap is a min-heap by time.
type alarmHeap struct{ list []alarm }

func (h *alarmHeap) first() alarm { return h.list[0] }

// Len implements heap.Interface.
func (h *alarmHeap) Len() int { return len(h.list) }

// Less implements heap.Interface.
func (h *alarmHeap) Less(i, j int) bool { return h.list[i].at.Before(h.list[j].at) }

// Swap implements heap.Interface.
func (h *alarmHeap) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }

// Push implements heap.Interface.
func (h *alarmHeap) Push(x any) {
	if a, ok := x.(alarm); ok {
		h.list = append(h.list, a)
	}
}

// Pop implements heap.Interface.
func (h *alarmHeap) Pop() any {
	end := len(h.list) - 1
	last := h.list[end]
	h.list[end] = alarm{}
	h.list = h.list[:end]
	return last
}
