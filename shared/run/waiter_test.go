package run_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"laneway/shared/run"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/test/backends"
)

const lease = 10 * time.Second

var (
	noon   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	runRef = run.RefOf("t", "r")
	client = run.Waiter{ConnectionID: "c", RequestID: "q", Kind: run.WaitSnapshot}
)

// withWaiter runs a test with one waiter over every store.
func withWaiter(t *testing.T, f func(t *testing.T, store table.Store)) {
	t.Helper()
	backends.Each(t, func(t *testing.T, store table.Store) {
		if err := run.PutWaiter(t.Context(), store, runRef, client, "put", noon.Add(time.Minute), noon.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		f(t, store)
	})
}

func loadWaiter(t *testing.T, store table.Store) run.WaitRow {
	t.Helper()
	w, there, err := run.LoadWaiter(t.Context(), store, runRef, client.ConnectionID, client.RequestID)
	if err != nil || !there {
		t.Fatal("no waiter", err)
	}
	return w
}

func take(t *testing.T, store table.Store, w run.WaitRow, answer string, at time.Time) (string, error) {
	t.Helper()
	got, err := w.Take(t.Context(), store, []byte(answer), at, lease)
	return string(got), err
}

func TestW2_TheAnswerIsWrittenBeforeItIsPosted(t *testing.T) {
	t.Parallel()
	withWaiter(t, func(t *testing.T, store table.Store) {
		got, err := take(t, store, loadWaiter(t, store), "first", noon)
		if err != nil || got != "first" {
			t.Fatalf("%q, %v", got, err)
		}
		if w := loadWaiter(t, store); string(w.Answer) != "first" || w.Lease != noon.Add(lease).UnixMilli() || w.Deadline != noon.Add(time.Minute).UnixMilli() {
			t.Fatalf("row %+v", w)
		}
	})
}

func TestW2_WhileOneAnswersOthersAreRefused(t *testing.T) {
	t.Parallel()
	withWaiter(t, func(t *testing.T, store table.Store) {
		stale := loadWaiter(t, store)
		if _, err := take(t, store, stale, "first", noon); err != nil {
			t.Fatal(err)
		}
		for name, w := range map[string]run.WaitRow{"read before": stale, "read after": loadWaiter(t, store)} {
			if got, err := take(t, store, w, "other", noon.Add(lease)); !errors.Is(err, run.ErrHeld) {
				t.Errorf("%s: %q, %v; want ErrHeld", name, got, err)
			}
		}
	})
}

func TestW2_WhoeverComesLaterPostsWhatIsWrittenThere(t *testing.T) {
	t.Parallel()
	withWaiter(t, func(t *testing.T, store table.Store) {
		stale := loadWaiter(t, store)
		if _, err := take(t, store, stale, "first", noon); err != nil {
			t.Fatal(err)
		}
		later := noon.Add(lease + time.Millisecond) // its answerer is dead
		// Who has not seen what is written there may not write something else.
		if got, err := take(t, store, stale, "other", later); !errors.Is(err, run.ErrHeld) {
			t.Fatalf("an answer was replaced: %q, %v", got, err)
		}
		got, err := take(t, store, loadWaiter(t, store), "other", later)
		if err != nil || got != "first" {
			t.Fatalf("%q, %v; want what was written", got, err)
		}
	})
}

func TestW2_AnAnsweredWaiterIsGone(t *testing.T) {
	t.Parallel()
	withWaiter(t, func(t *testing.T, store table.Store) {
		w := loadWaiter(t, store)
		if _, err := take(t, store, w, "first", noon); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := w.Done(t.Context(), store); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := take(t, store, w, "other", noon.Add(time.Hour)); !errors.Is(err, run.ErrAnswered) {
			t.Fatalf("%q, %v; want ErrAnswered", got, err)
		}
		if _, there, err := run.LoadWaiter(t.Context(), store, runRef, client.ConnectionID, client.RequestID); there || err != nil {
			t.Fatal(there, err)
		}
		rows, err := run.Waiters(t.Context(), store, runRef)
		if err != nil || len(rows) != 0 {
			t.Fatal(rows, err)
		}
	})
}

// A put that got no answer is sent again when its waiter was told meanwhile, because
// whoever sends it stood still: nobody waits a second time.
func TestW2_APutSentAgainBehindTheAnswerMakesNobodyWait(t *testing.T) {
	t.Parallel()
	withWaiter(t, func(t *testing.T, store table.Store) {
		w := loadWaiter(t, store)
		if _, err := w.Take(t.Context(), store, []byte("first"), noon, lease); err != nil {
			t.Fatal(err)
		}
		if err := w.Done(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		if err := run.PutWaiter(t.Context(), store, runRef, client, "put", noon.Add(time.Minute), noon.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		now := loadWaiter(t, store)
		if !now.Told || string(now.Answer) != "first" || now.Put != "put" {
			t.Fatalf("%+v; want a row that was told", now)
		}
		if got, err := take(t, store, now, "other", noon.Add(time.Hour)); !errors.Is(err, run.ErrAnswered) {
			t.Fatalf("%q, %v; want ErrAnswered", got, err)
		}
		if rows, err := run.Waiters(t.Context(), store, runRef); err != nil || len(rows) != 0 {
			t.Fatal(rows, err)
		}
	})
}

func TestW2_OfManyAnswerersOnePosts(t *testing.T) {
	t.Parallel()
	withWaiter(t, func(t *testing.T, store table.Store) {
		w := loadWaiter(t, store)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var won []string
		for n := range 8 {
			wg.Go(func() {
				got, err := take(t, store, w, fmt.Sprint("answer ", n), noon)
				switch {
				case err == nil:
					mu.Lock()
					won = append(won, got)
					mu.Unlock()
				case !errors.Is(err, run.ErrHeld):
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 || string(loadWaiter(t, store).Answer) != won[0] {
			t.Fatalf("posted %q", won)
		}
	})
}

func TestC5_ALostAnswerOfATakeIsSettled(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faulty.Fault{
		"answer lost": faulty.LostAnswer, "request lost": faulty.LostRequest, "conflict": faulty.Conflict, "repeated below": faulty.Repeated,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withWaiter(t, func(t *testing.T, store table.Store) {
				w := loadWaiter(t, store)
				s := faulty.New(store, faulty.Config{At: func(c faulty.Call) faulty.Fault {
					if c.N == 0 {
						return fault
					}
					return faulty.None
				}})
				if got, err := take(t, s, w, "first", noon); err != nil || got != "first" {
					t.Fatalf("%q, %v", got, err)
				}
			})
		})
	}
}

// A run may live for longer than anything is kept: who waits for its end is not
// cleaned up meanwhile.
func TestW1_AWaiterWithoutADeadlineNeverExpires(t *testing.T) {
	t.Parallel()
	backends.Each(t, func(t *testing.T, store table.Store) {
		for name, deadline := range map[string]time.Time{"none": {}, "some": noon} {
			w := run.Waiter{ConnectionID: name, RequestID: "q", Kind: run.WaitFinal}
			if err := run.PutWaiter(t.Context(), store, runRef, w, "put", deadline, noon.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			it, err := store.Get(t.Context(), runRef.WaiterKey(name, "q"))
			if err != nil {
				t.Fatal(err)
			}
			if _, expires := it.Attrs[table.TTLAttr]; expires == deadline.IsZero() {
				t.Errorf("deadline %v, expires %v", deadline, expires)
			}
		}
	})
}

func TestWaiters_AreListedOverPages(t *testing.T) {
	t.Parallel()
	backends.Each(t, func(t *testing.T, store table.Store) {
		for n := range 7 {
			w := run.Waiter{ConnectionID: fmt.Sprint("c", n), RequestID: "q", Kind: run.WaitFinal}
			for range 2 { // a repeat of a request replaces it
				if err := run.PutWaiter(t.Context(), store, runRef, w, "put", time.Time{}, noon); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := store.Write(t.Context(), table.Op{Kind: table.Put, Key: runRef.EventKey(1), Item: table.Attrs{"x": int64(1)}}); err != nil {
			t.Fatal(err)
		}
		rows, err := run.Waiters(t.Context(), faulty.New(store, faulty.Config{PageItems: 2}), runRef)
		if err != nil || len(rows) != 7 {
			t.Fatalf("%d waiters, %v", len(rows), err)
		}
		seen := make(map[string]bool)
		for _, w := range rows {
			seen[w.ConnectionID] = true
			if w.Kind != run.WaitFinal || w.Deadline != 0 {
				t.Errorf("row %+v", w)
			}
		}
		if len(seen) != 7 {
			t.Errorf("connections %v", seen)
		}
	})
}
