package fault

import (
	"fmt"
	"testing"
	"time"

	"laneway/shared/run"
)

// texts are written by one sender in a row, each while those before it wait for more; a
// call of a program comes behind them.
func texts(s *Sim) {
	for i := range 3 {
		o := says(s, time.Duration(1+4*i)*100*time.Millisecond, fmt.Sprintf("t%d", i+1), "text", "")
		o.conn = s.conns["conn1"]
	}
	says(s, 6*time.Second, "r", "agent", "")
}

// TestTexts_DeadOrFrozenAtEveryCall: whoever makes a call dies before it, or freezes
// until all was done by others: a gateway, a runner, the notifier. Every text is in the
// conversation once, in order, and has the end of its turn. With nobody hurt the three
// are one turn.
func TestTexts_DeadOrFrozenAtEveryCall(t *testing.T) {
	t.Parallel()
	for name, hurt := range map[string]func(*Sim, *call){
		"dies":    func(s *Sim, c *call) { s.kill(c.p, "at "+c.what) },
		"freezes": func(s *Sim, c *call) { s.freeze(c.p, 10*time.Minute, c.what) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nth, calls := 0, 0
			hit := once(func(_ *Sim, _ *call) bool { calls++; return calls == nth })
			st := tell(t, Profile{Inbound: 2 * time.Second}, texts, func(s *Sim, c *call) bool {
				if !hit(s, c) {
					return false
				}
				hurt(s, c)
				return true
			})
			st.run(0)
			if into := st.ghost.runs["t3"].into; into != "t1" || st.ghost.runs["t2"].into != "t1" {
				t.Errorf("with nobody hurt the third text is a part of %q", into)
			}
			all := calls
			for nth = 1; nth <= all; nth++ {
				calls = 0
				st.run(uint64(nth))
				for _, id := range []string{"t1", "t2", "t3", "r"} {
					if r := st.ghost.runs[id]; r == nil || r.users != 1 || r.end == nil || r.end.Kind != run.OK {
						t.Errorf("at call %d: %s is %+v", nth, id, r)
					}
				}
			}
			t.Logf("%d calls", all)
		})
	}
}
