package bolt

import (
	"testing"
	"time"

	"laneway/shared/queue/lineartest"
	"laneway/shared/queue/queuetest"
)

func TestLinearizable(t *testing.T) {
	t.Parallel()
	lineartest.Check(t, func(t *testing.T) lineartest.Queue {
		t.Helper()
		q := open(t, Config{Lanes: queuetest.Lanes(), Visibility: time.Second, TimerMaxReceives: queuetest.MaxReceives})
		t.Cleanup(func() { closeQueue(t, q) })
		return lineartest.Queue{Sender: q, Receive: q.Run}
	})
}
