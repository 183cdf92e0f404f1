// Package bolt is the queue of the one-machine edition: lanes in memory, timers
// and dead letters in a bbolt file.
//
// Guarantees, beside those of the port: a Send wakes its handler without polling;
// ready groups of a lane take turns, so a group with a backlog delays another by
// one message at most while a handler is free; a timer that After accepted is on
// disk and fires after a restart, at once where it is overdue. Lanes are lost
// when the process ends, which the port allows: the tables know the work, and
// the edition sweeps them at its start. No goroutine lives outside of Run, and
// none outlives it.
package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"laneway/shared/clock"
	"laneway/shared/id"
	"laneway/shared/meter"
	"laneway/shared/queue"
)

// Defaults of Config.
const (
	// DefaultVisibility is the pause before a failed message comes again. It need
	// not outlast a handler as on SQS: a handler here can't die alone.
	DefaultVisibility       = 10 * time.Second
	DefaultTimerConcurrency = 16
	// lockWait is how long Open waits for another process to let go of the file.
	lockWait = time.Second
)

// ErrRunning is what Run and Close answer while a Run is not over.
var ErrRunning = errors.New("queue/bolt: already running")

// Config is what Open takes. Exactly one of DB and Path is set.
type Config struct {
	DB   *bbolt.DB // shared with others; stays open at Close
	Path string    // a file of its own, made if absent, closed at Close

	Clock clock.Clock  // zero: clock.System
	IDs   id.Source    // of messages; zero: id.UUID
	Log   *slog.Logger // of failures; zero: none is written

	Lanes            []queue.Def   // zero: queue.Definitions()
	Visibility       time.Duration // zero: DefaultVisibility
	TimerConcurrency int           // most timer handlers at once; zero: DefaultTimerConcurrency
	TimerMaxReceives int           // zero: queue.TimerMaxReceives
}

func (c Config) withDefaults() (Config, error) {
	if (c.DB == nil) == (c.Path == "") {
		return c, errors.New("queue/bolt: set one of DB and Path")
	}
	if c.Visibility < 0 || c.TimerConcurrency < 0 || c.TimerMaxReceives < 0 {
		return c, errors.New("queue/bolt: negative setting")
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.IDs == nil {
		c.IDs = id.UUID
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if len(c.Lanes) == 0 {
		c.Lanes = queue.Definitions()
	}
	c.Visibility = cmp.Or(c.Visibility, DefaultVisibility)
	c.TimerConcurrency = cmp.Or(c.TimerConcurrency, DefaultTimerConcurrency)
	c.TimerMaxReceives = cmp.Or(c.TimerMaxReceives, queue.TimerMaxReceives)
	for _, d := range c.Lanes {
		if d.Lane == "" || d.Concurrency < 1 || d.MaxReceives < 1 {
			return c, fmt.Errorf("queue/bolt: lane %q needs a name, a concurrency and a number of receives", d.Lane)
		}
	}
	return c, nil
}

// Queue implements queue.Sender, queue.Timers and queue.DeadLetterStore, and is
// their receiving side.
type Queue struct {
	cfg    Config
	db     *bbolt.DB
	commit *committer
	lanes  map[queue.Lane]*line
	timers *line
	spent  spent // timers that are done but still on disk
	alarms alarms

	mu      sync.Mutex
	running bool
	closed  bool
}

var (
	_ queue.Sender          = (*Queue)(nil)
	_ queue.Timers          = (*Queue)(nil)
	_ queue.DeadLetterStore = (*Queue)(nil)
)

// Open opens the queue and loads its timers. Nothing is handled before Run.
func Open(c Config) (*Queue, error) {
	cfg, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	db := cfg.DB
	if db == nil {
		db, err = bbolt.Open(cfg.Path, 0o600, &bbolt.Options{Timeout: lockWait, FreelistType: bbolt.FreelistMapType})
		if err != nil {
			return nil, fmt.Errorf("queue/bolt: open: %w", err)
		}
	}
	q := &Queue{cfg: cfg, db: db, commit: newCommitter(db), lanes: make(map[queue.Lane]*line, len(cfg.Lanes))}
	q.alarms.init(cfg.Clock)
	q.spent.init()
	for _, d := range cfg.Lanes {
		if q.lanes[d.Lane] != nil {
			err = fmt.Errorf("queue/bolt: lane %q is there twice", d.Lane)
		}
		q.lanes[d.Lane] = newLine(q, d)
	}
	q.timers = newLine(q, queue.Def{Concurrency: cfg.TimerConcurrency, MaxReceives: cfg.TimerMaxReceives})
	if err == nil {
		err = q.load()
	}
	if err != nil {
		if cfg.DB == nil {
			err = errors.Join(err, db.Close())
		}
		return nil, err
	}
	return q, nil
}

// Send implements queue.Sender. It never waits for the disk or a handler.
func (q *Queue) Send(ctx context.Context, lane queue.Lane, group, dedup string, body []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l := q.lanes[lane]
	if l == nil {
		return fmt.Errorf("%w: no lane %q", queue.ErrInvalid, lane)
	}
	if err := queue.Check(group, dedup, body); err != nil {
		return err
	}
	if q.isClosed() {
		return queue.ErrClosed
	}
	meter.From(ctx).Add(meter.QueueCalls, queue.Requests(len(body)))
	l.send(group, dedup, body)
	return nil
}

// Run hands messages to laneHandler and timers to timerHandler until ctx ends and
// every handler has returned; a nil handler leaves its side waiting. Handlers get
// ctx itself. What fails because of the end is not counted as a failure. Only one
// Run at a time; another may follow it.
func (q *Queue) Run(ctx context.Context, laneHandler, timerHandler queue.Handler) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return queue.ErrClosed
	}
	if q.running {
		q.mu.Unlock()
		return ErrRunning
	}
	q.running = true
	q.mu.Unlock()

	var wg sync.WaitGroup
	if laneHandler != nil {
		for _, l := range q.lanes {
			l.start(ctx, laneHandler, &wg)
		}
	}
	if timerHandler != nil {
		q.timers.start(ctx, timerHandler, &wg)
	}
	wg.Go(func() { q.clean(ctx) })
	q.alarms.run(ctx)

	// After stop, no line begins a handler, so Wait sees all there will be.
	for _, l := range q.lanes {
		l.stop()
	}
	q.timers.stop()
	wg.Wait()
	q.mu.Lock()
	q.running = false
	q.mu.Unlock()
	return nil
}

// Close writes what is left to write and lets go of the file if it is its own.
// It is called after Run has returned.
func (q *Queue) Close() error {
	q.mu.Lock()
	if q.running {
		q.mu.Unlock()
		return ErrRunning
	}
	if q.closed {
		q.mu.Unlock()
		return nil
	}
	q.closed = true
	q.mu.Unlock()
	err := q.flush(context.Background())
	if q.cfg.DB == nil {
		err = errors.Join(err, q.db.Close())
	}
	return err
}

func (q *Queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}
