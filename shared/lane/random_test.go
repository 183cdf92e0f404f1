package lane_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"laneway/shared/lane"
	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
)

// checked is a store that looks at every hot item that passes.
type checked struct {
	table.Store
	t *testing.T
}

func (c checked) see(k table.Key, it *table.Item) {
	ref, ok := session.RefOfPK(k.PK)
	if it == nil || !ok || k != ref.MetaKey() {
		return
	}
	m := session.DecodeMeta(ref, it)
	if err := lanetest.CheckMeta(&m); err != nil {
		c.t.Error(err)
	}
	if n := it.Attrs.Int(session.AttrPendingN); n != int64(len(m.Pending)) {
		c.t.Errorf("%d runs are pending, the count says %d", len(m.Pending), n)
	}
}

func (c checked) Get(ctx context.Context, k table.Key) (table.Item, error) {
	it, err := c.Store.Get(ctx, k)
	if err == nil {
		c.see(k, &it)
	}
	return it, err
}

func (c checked) Write(ctx context.Context, ops ...table.Op) (table.Result, error) {
	res, err := c.Store.Write(ctx, ops...)
	if ce, ok := table.Failed(err); ok && ce.Op < len(ops) {
		c.see(ops[ce.Op].Key, ce.Found)
	}
	if err == nil {
		c.see(ops[0].Key, res.New)
	}
	return res, err
}

const (
	sessions = 3
	callers  = 3
	runners  = 4
)

// storm is callers, runners and a watchdog on a few sessions, over a store that
// conflicts and loses requests and answers.
type storm struct {
	t     *testing.T
	w     *lanetest.World // without faults
	proc  *lanetest.World // with them
	d     *dice
	mu    sync.Mutex
	box   []lanetest.Sent
	acc   map[string]bool // accepted for certain
	steps int
}

func TestRandomCallersRunnersAndFaults(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		t.Run(fmt.Sprint("storm ", n), func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				seed := rand.Uint64()
				if s, err := strconv.ParseUint(os.Getenv("LANE_SEED"), 10, 64); err == nil {
					seed = s
				}
				t.Cleanup(func() {
					if t.Failed() {
						t.Logf("seed %d (the order of goroutines is not part of it)", seed)
					}
				})
				s := &storm{t: t, d: &dice{r: rand.New(rand.NewPCG(seed, 1))}, acc: make(map[string]bool), steps: 40}
				if t.Name()[len(t.Name())-6:] == "dynamo" {
					s.steps = 8
				}
				plain := checked{w.Store, t}
				w.Over(plain)
				s.w = w
				s.proc = w.Process(faulty.New(plain, faulty.Config{
					Seed: seed, Conflict: 0.05, Throttle: 0.03, LostRequest: 0.03, LostAnswer: 0.05, Repeated: 0.02, IndexLag: 5,
				}))
				s.rage()
				s.calm()
				s.check()
			})
		})
	}
}

func (s *storm) rage() {
	var work, serve sync.WaitGroup
	over := make(chan struct{})
	for c := range callers {
		work.Go(func() {
			r := s.runner(s.proc)
			for n := range s.steps {
				s.call(fmt.Sprintf("c%d-%d", c, n))
				s.serve(r) // so that runs come to their turns before the next stop
				s.serve(r)
			}
		})
	}
	for range runners {
		serve.Go(func() {
			r := s.runner(s.proc)
			for {
				select {
				case <-over:
					return
				default:
					s.serve(r)
				}
			}
		})
	}
	work.Wait()
	close(over)
	serve.Wait()
}

func (s *storm) runner(w *lanetest.World) *runner {
	return &runner{
		w: w, rand: s.d.n, dies: func() bool { return w == s.proc && s.d.n(25) == 0 },
		pause: func() {
			if s.d.n(30) == 0 { // everybody stands still longer than a lease holds
				s.w.Expire()
			}
		},
	}
}

// call is one thing that a caller does.
func (s *storm) call(id string) {
	w := *s.proc
	w.Ref.Key = fmt.Sprint("agent:main:", s.d.n(sessions))
	ctx := s.t.Context()
	c := w.Call(id)
	c.ConnectionID, c.FrameAt = id[:2], w.Clock.Now().UnixMicro()
	c.Run.Lane = []string{"main", "main", "cron"}[s.d.n(3)]
	var err error
	steered := false
	switch s.d.n(30) {
	case 0:
		_, err = w.Lanes.StopAll(ctx, lane.Stop{Ref: w.Ref, Reason: "stop"})
		s.expect(err)
		return
	case 1, 2:
		_, err = w.Lanes.StopRun(ctx, lane.Stop{Ref: w.Ref, RunID: fmt.Sprintf("c%d-%d", s.d.n(callers), s.d.n(s.steps)), Reason: "rpc"})
		s.expect(err)
		return
	case 3, 4, 5, 6, 7, 8, 9, 10:
		c.Run.Lane = "main"
		_, steered, err = w.Lanes.Steer(ctx, c)
	case 11:
		c.Interrupt = true
	case 12, 13, 14, 15:
		c.Gather = 5 * time.Second
	}
	if err == nil && !steered {
		_, err = w.Lanes.Accept(ctx, c)
	}
	s.expect(err)
	if err == nil {
		s.mu.Lock()
		s.acc[id] = true
		s.mu.Unlock()
	}
}

// expect refuses errors that a caller may not see.
func (s *storm) expect(err error) {
	switch {
	case err == nil, errors.Is(err, lane.ErrUnavailable), errors.Is(err, lane.ErrFull), errors.Is(err, errDied):
	case errors.Is(err, table.ErrConflict), errors.Is(err, table.ErrThrottled), errors.Is(err, table.ErrUnknown):
	default:
		s.t.Error(err)
	}
}

// take gives one of the wake-ups that wait, any one.
func (s *storm) take() (lanetest.Sent, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.box = append(s.box, s.w.Queue.Take()...)
	if len(s.box) == 0 {
		return lanetest.Sent{}, false
	}
	n := s.d.n(len(s.box))
	m := s.box[n]
	if s.d.n(20) != 0 { // else it comes twice
		s.box = slices.Delete(s.box, n, n+1)
	}
	return m, true
}

func (s *storm) serve(r *runner) {
	m, ok := s.take()
	switch {
	case !ok:
		s.w.Clock.Advance(time.Second)
		if s.d.n(10) == 0 {
			_, err := r.w.Lanes.Sweep(s.t.Context())
			s.expect(err)
		}
		return
	case s.d.n(20) == 0:
		return // lost
	}
	err := r.handle(s.t.Context(), m.Wakeup)
	s.expect(err)
	if err != nil && s.d.n(2) == 0 { // else its receiver is dead and holds it for ever
		s.mu.Lock()
		s.box = append(s.box, m)
		s.mu.Unlock()
	}
}

// calm lets what is left be done without any fault.
func (s *storm) calm() {
	r := s.runner(s.w)
	for range 5000 {
		if m, ok := s.take(); ok {
			if err := r.handle(s.t.Context(), m.Wakeup); err != nil {
				s.t.Fatal(err)
			}
			continue
		}
		left, err := s.w.Lanes.Sweep(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if left.Active == 0 && len(s.w.Queue.Waiting()) == 0 {
			return
		}
		s.w.Clock.Advance(20 * time.Second)
	}
	s.t.Fatal("never idle")
}

// check looks at what came of it all.
func (s *storm) check() {
	ctx := s.t.Context()
	told := s.w.Ends.Told()
	seq := make(map[string]int64)
	for n := range callers * s.steps {
		id := fmt.Sprintf("c%d-%d", n/s.steps, n%s.steps)
		st, err := run.Load(ctx, s.w.Store, run.RefOf(s.w.Ref.Tenant, id))
		if errors.Is(err, run.ErrUnknown) && !s.acc[id] {
			continue
		}
		if err != nil {
			s.t.Errorf("accepted run %s: %v", id, err)
			continue
		}
		seq[id] = st.Seq
		if !st.Done() || st.State != run.Ended {
			s.t.Errorf("run %s has no end: %s", id, st.State)
		}
		if !slices.Contains(told, id) {
			s.t.Errorf("the end of run %s was never told", id)
		}
	}
	total := 0
	for n := range sessions {
		ref := session.Ref{Tenant: s.w.Ref.Tenant, Key: fmt.Sprint("agent:main:", n)}
		rows, err := loadRows(ctx, s.w.Store, ref)
		if err != nil {
			s.t.Fatal(err)
		}
		m, err := session.LoadMeta(ctx, s.w.Store, ref)
		if err != nil || int(m.Head) != len(rows) {
			s.t.Errorf("%s: head %d of %d rows, %v", ref.Key, m.Head, len(rows), err)
		}
		last, token, users := int64(0), int64(0), make(map[string]bool)
		for _, row := range rows {
			if row.token < token {
				s.t.Errorf("%s: a writer with token %d came behind one with %d", ref.Key, row.token, token)
			}
			token = row.token
			if !row.user {
				continue
			}
			total++
			if users[row.run] {
				s.t.Errorf("%s: the message of %s is there twice", ref.Key, row.run)
			}
			users[row.run] = true
			if seq[row.run] <= last {
				s.t.Errorf("%s: %s (%d) came behind %d", ref.Key, row.run, seq[row.run], last)
			}
			last = seq[row.run]
		}
	}
	if total < s.steps/2 {
		s.t.Errorf("only %d messages came through: the test tested little", total)
	}
}
