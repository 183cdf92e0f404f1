package bolt

import (
	"testing"
	"time"

	"laneway/shared/queue/queuetest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, func(t *testing.T) queuetest.Fixture {
		t.Helper()
		const visibility = time.Second
		q := open(t, Config{Lanes: queuetest.Lanes(), Visibility: visibility, TimerMaxReceives: queuetest.MaxReceives})
		t.Cleanup(func() { closeQueue(t, q) })
		return queuetest.Fixture{Sender: q, Timers: q, Receive: q.Run, Dead: q, Visibility: visibility}
	})
}
