package adapter_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"laneway/functions/adapter"
	"laneway/shared/clock/clocktest"
	"laneway/shared/lane"
)

// slow is a look that takes its time, on a clock that stands still otherwise.
type slow struct {
	clock *clocktest.Manual
	takes time.Duration
	late  []time.Duration
	at    []time.Duration
	began time.Time
}

func (s *slow) Sweep(_ context.Context, late time.Duration) (lane.Swept, error) {
	s.late, s.at = append(s.late, late), append(s.at, s.clock.Now().Sub(s.began))
	s.clock.Advance(s.takes)
	return lane.Swept{Active: 1}, nil
}

// TestR3_LooksBeginEvery20Seconds: a look that waited for a run to end takes nothing
// from the next one's time, and one that comes late says so.
func TestR3_LooksBeginEvery20Seconds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ takes, over, late time.Duration }{
		"quick": {0, 0, 0}, "slow": {15 * time.Second, 0, 0}, "frozen in between": {0, 3 * time.Second, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := clocktest.New()
			s := &slow{clock: m, takes: c.takes, began: m.Now()}
			w := &adapter.Watchdog{Lanes: s, Clock: m, Log: quiet}
			done := make(chan error, 1)
			go func() {
				done <- w.Handle(context.WithoutCancel(t.Context()), sample[scheduleEvent](t, "watchdog.json"))
			}()
			for range 2 {
				m.Waiting(t, 1)
				m.Advance(20*time.Second - c.takes + c.over)
			}
			must(t, <-done)
			step := 20*time.Second + c.over
			if want := []time.Duration{0, step, 2 * step}; !slices.Equal(s.at, want) {
				t.Errorf("looked at %v, want %v", s.at, want)
			}
			if want := []time.Duration{0, c.late, c.late}; !slices.Equal(s.late, want) {
				t.Errorf("late by %v, want %v", s.late, want)
			}
		})
	}
}
