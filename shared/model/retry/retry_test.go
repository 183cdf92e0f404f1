package retry

import (
	"encoding/json"
	"testing"
	"time"

	"laneway/shared/model"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const s = time.Second

// middle makes the jitter 1.
func middle() float64 { return 0.5 }

func fail(c model.Class) *model.Error { return &model.Error{Class: c} }

// count calls Next with the same failure until it says no, while a fake clock
// passes the delays.
func count(r *Machine, err *model.Error) int {
	n, now := 0, start
	for {
		d, again := r.Next(err, false, now)
		if !again || n > 100 {
			return n
		}
		n++
		now = now.Add(d)
	}
}

// Runtime 7.2 stage 1, row by row.
func TestHowOftenEachClassIsRetried(t *testing.T) {
	t.Parallel()
	for class, want := range map[model.Class]int{
		model.RateLimit:       9, // 10 attempts
		model.Overloaded:      8,
		model.ServerError:     8,
		model.Timeout:         8,
		OutputLimit:           8,
		model.EmptyResponse:   1,
		model.Billing:         0,
		model.Auth:            0,
		model.AuthPermanent:   0,
		model.Format:          0,
		model.ContextOverflow: 0,
		model.ModelNotFound:   0,
		model.SessionExpired:  0,
		model.TLSCertificate:  0,
		model.NoErrorDetails:  0,
		model.Unclassified:    0,
		model.Unknown:         0,
		model.Aborted:         0,
		"refusal":             0,
	} {
		// 1 ms: so short that the window does not end it.
		if got := count(New(Config{Base: time.Millisecond, Rand: middle}), fail(class)); got != want {
			t.Errorf("%s: %d retries, want %d", class, got, want)
		}
	}
	if _, again := New(Config{}).Next(nil, false, start); again {
		t.Error("no failure is retried")
	}
}

func TestBackoffDoublesUpToTheCap(t *testing.T) {
	t.Parallel()
	for _, jitter := range []struct{ rand, factor float64 }{{0, 0.5}, {0.5, 1}, {0.999999999999, 1.5}} {
		r := New(Config{Rand: func() float64 { return jitter.rand }})
		for i, want := range []time.Duration{1 * s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s, 30 * s, 30 * s} {
			d, again := r.Next(fail(model.RateLimit), false, start)
			w := time.Duration(float64(want) * jitter.factor)
			if diff := d - w; !again || diff < -time.Microsecond || diff > time.Microsecond {
				t.Errorf("jitter %v, retry %d: %s, %v; want %s", jitter.factor, i+1, d, again, w)
			}
		}
	}
}

func TestWindowOf90Seconds(t *testing.T) {
	t.Parallel()
	r := New(Config{Rand: middle})
	next := func(c model.Class, at time.Duration, want bool) {
		t.Helper()
		if _, again := r.Next(fail(c), false, start.Add(at)); again != want {
			t.Errorf("%s at %s: again = %v", c, at, again)
		}
	}
	next(model.ServerError, 0, true)
	next(model.Timeout, 90*time.Second, true)
	next(model.Overloaded, 90*time.Second+time.Millisecond, false)
	next(model.RateLimit, 91*time.Second, true) // has no window
	next(OutputLimit, 92*time.Second, true)     // ignores it
	r.Success()
	next(model.ServerError, 200*time.Second, true) // a new window
	next(model.ServerError, 290*time.Second, true)
	next(model.ServerError, 291*time.Second, false)
}

func TestRateLimitsOpenNoWindow(t *testing.T) {
	t.Parallel()
	r := New(Config{Rand: middle})
	r.Next(fail(model.RateLimit), false, start)
	if _, again := r.Next(fail(model.ServerError), false, start.Add(5*time.Minute)); !again {
		t.Error("the window began with a rate limit")
	}
}

func TestSuccessClearsTheWindowButNotTheCount(t *testing.T) {
	t.Parallel()
	r := New(Config{Base: time.Millisecond, Rand: middle})
	for i := range 8 {
		if _, again := r.Next(fail(model.ServerError), false, start.Add(time.Duration(i)*time.Hour)); !again {
			t.Fatalf("retry %d refused", i+1)
		}
		r.Success()
	}
	if _, again := r.Next(fail(model.ServerError), false, start); again {
		t.Error("a ninth retry")
	}
}

func TestNineRetriesOnlyIfTheFirstFailureWasARateLimit(t *testing.T) {
	t.Parallel()
	r := New(Config{Base: time.Millisecond, Rand: middle})
	r.Next(fail(model.ServerError), false, start)
	if got := 1 + count(r, fail(model.RateLimit)); got != 8 {
		t.Errorf("server error first: %d retries", got)
	}
	r = New(Config{Base: time.Millisecond, Rand: middle})
	r.Next(fail(model.RateLimit), false, start)
	if got := 1 + count(r, fail(model.ServerError)); got != 9 {
		t.Errorf("rate limit first: %d retries", got)
	}
}

func TestRetryAfterIsAFloor(t *testing.T) {
	t.Parallel()
	r := New(Config{Rand: middle})
	if d, again := r.Next(&model.Error{Class: model.ServerError, RetryAfter: 45 * time.Second}, false, start); !again || d != 45*time.Second {
		t.Errorf("45 s: %s, %v", d, again)
	}
	if d, again := r.Next(&model.Error{Class: model.ServerError, RetryAfter: time.Millisecond}, false, start); !again || d != 2*time.Second {
		t.Errorf("1 ms: %s, %v", d, again)
	}
	// Without a fallback it is honoured in full.
	if d, again := r.Next(&model.Error{Class: model.RateLimit, RetryAfter: 120 * time.Second}, false, start); !again || d != 120*time.Second {
		t.Errorf("120 s: %s, %v", d, again)
	}
}

func TestLongWaitsGoToTheFallback(t *testing.T) {
	t.Parallel()
	limited := func(after time.Duration, long bool) *model.Error {
		return &model.Error{Class: model.RateLimit, RetryAfter: after, LongWindow: long}
	}
	for _, row := range []struct {
		name string
		cfg  Config
		err  *model.Error
		want bool
	}{
		{"60 s with a fallback", Config{Fallback: true}, limited(time.Minute, false), true},
		{"61 s with a fallback", Config{Fallback: true}, limited(61*time.Second, false), false},
		{"61 s without", Config{}, limited(61*time.Second, false), true},
		{"61 s with a fallback and no cap", Config{Fallback: true, MaxDelay: -1}, limited(61*time.Second, false), true},
		{"10 s with a fallback and a cap of 5 s", Config{Fallback: true, MaxDelay: 5 * time.Second}, limited(10*time.Second, false), false},
		{"daily limit with a fallback", Config{Fallback: true}, limited(0, true), false},
		{"daily limit without", Config{}, limited(0, true), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if _, again := New(row.cfg).Next(row.err, false, start); again != row.want {
				t.Errorf("again = %v", again)
			}
		})
	}
}

func TestMaxRetriesOverrides(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		max   int
		class model.Class
		want  int
	}{
		{-1, model.ServerError, 0},
		{-1, model.RateLimit, 0},
		{-1, model.EmptyResponse, 0},
		{2, model.ServerError, 2},
		{2, model.RateLimit, 2},
		{20, model.ServerError, 20},
		{20, model.RateLimit, 9},
	} {
		if got := count(New(Config{Base: time.Millisecond, Rand: middle, MaxRetries: row.max}), fail(row.class)); got != row.want {
			t.Errorf("MaxRetries %d, %s: %d retries, want %d", row.max, row.class, got, row.want)
		}
	}
}

func TestEmptyResponse(t *testing.T) {
	t.Parallel()
	r := New(Config{Rand: middle})
	if _, again := r.Next(fail(model.EmptyResponse), true, start); again {
		t.Error("an answer with output is not empty")
	}
	if d, again := r.Next(fail(model.EmptyResponse), false, start); !again || d != time.Second {
		t.Errorf("first: %s, %v", d, again)
	}
	r.Success()
	if _, again := r.Next(fail(model.EmptyResponse), false, start); !again {
		t.Error("the next step has no try of its own")
	}
	if r.state.Retries != 0 {
		t.Errorf("it was counted among the transient ones: %+v", r.state)
	}
}

func TestFiveIdleTimeoutsInARowBreak(t *testing.T) {
	t.Parallel()
	idle := &model.Error{Class: model.Timeout, Err: model.ErrIdle}
	r := New(Config{Rand: middle})
	for i := range 4 {
		if _, again := r.Next(idle, false, start); !again || r.Broken() {
			t.Fatalf("idle timeout %d: again = %v, broken = %v", i+1, again, r.Broken())
		}
	}
	if _, again := r.Next(idle, false, start); again || !r.Broken() {
		t.Errorf("fifth: again = %v, broken = %v", again, r.Broken())
	}

	r = New(Config{Rand: middle})
	for range 3 {
		r.Next(idle, false, start)
	}
	r.Success()
	r.Next(idle, false, start)
	r.Next(fail(model.ServerError), false, start)
	if r.Next(idle, false, start); r.Broken() || r.state.Idle != 1 {
		t.Errorf("not in a row: %+v", r.state)
	}
}

func TestAttemptForStatusEvents(t *testing.T) {
	t.Parallel()
	r := New(Config{})
	r.Next(fail(model.RateLimit), false, start)
	if n, of := r.Attempts()+1, r.MaxAttempts(); n != 2 || of != 10 {
		t.Errorf("attempt %d of %d", n, of)
	}
	r = New(Config{})
	r.Next(fail(model.Timeout), false, start)
	r.Next(fail(model.Timeout), false, start)
	if n, of := r.Attempts()+1, r.MaxAttempts(); n != 3 || of != 9 {
		t.Errorf("attempt %d of %d", n, of)
	}
}

func TestStateSurvivesACheckpointAtAnyPoint(t *testing.T) {
	t.Parallel()
	steps := []model.Class{model.RateLimit, model.EmptyResponse, "ok", model.Timeout, model.ServerError, "ok", OutputLimit, model.Timeout, model.Overloaded}
	cfg := Config{Rand: middle}
	whole, pieces := New(cfg), New(cfg)
	for i, class := range steps {
		now := start.Add(time.Duration(i) * 20 * time.Second)
		var err error
		if pieces, err = Restore(cfg, pieces.State()); err != nil {
			t.Fatal(err)
		}
		if class == "ok" {
			whole.Success()
			pieces.Success()
			continue
		}
		d1, a1 := whole.Next(fail(class), false, now)
		d2, a2 := pieces.Next(fail(class), false, now)
		if d1 != d2 || a1 != a2 || whole.state != pieces.state {
			t.Errorf("step %d: %s %v %+v, restored: %s %v %+v", i, d1, a1, whole.state, d2, a2, pieces.state)
		}
	}
}

func TestRestoreFromNothingAndFromNonsense(t *testing.T) {
	t.Parallel()
	if r, err := Restore(Config{}, nil); err != nil || r.Attempts() != 0 {
		t.Errorf("from nothing: %v", err)
	}
	if _, err := Restore(Config{}, json.RawMessage(`{"retries":"many"}`)); err == nil {
		t.Error("from nonsense: no error")
	}
}
