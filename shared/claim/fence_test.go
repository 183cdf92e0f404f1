package claim_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"laneway/shared/claim"
	"laneway/shared/lane/lanetest"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/table"
)

// attempts is every way to write that a holder has.
func attempts(w *lanetest.World, h *claim.Holder) map[string]func(context.Context) error {
	r := run.Ref{Tenant: w.Ref.Tenant, Run: "r1"}
	return map[string]func(context.Context) error{
		"append a row": func(ctx context.Context) error {
			return h.Commit(ctx, claim.Tx{Head: 9, Ops: []table.Op{row(w.Ref, "000000000009")}})
		},
		"rewrite the base": func(ctx context.Context) error {
			return h.Commit(ctx, claim.Tx{Set: []table.SetOp{{Path: table.P(session.AttrBase), Value: int64(3)}}})
		},
		"ledger row": func(ctx context.Context) error {
			return h.Commit(ctx, claim.Tx{Ops: []table.Op{{Kind: table.Put, Key: r.LedgerKey(1, 0), Item: table.Attrs{"s": "started"}}}})
		},
		"change the run": func(ctx context.Context) error {
			return h.Commit(ctx, claim.Tx{Ops: []table.Op{{
				Kind: table.Update, Key: r.StatusKey(), If: table.Exists(),
				Set: []table.SetOp{{Path: table.P(run.AttrAttempt), Value: int64(99)}},
			}}})
		},
		"end the run": func(ctx context.Context) error {
			return h.Commit(ctx, lanetest.Terminal(h, w.Clock.Now(), run.Outcome{Kind: run.OK}))
		},
		"nest":              func(ctx context.Context) error { return h.Nest(ctx, true) },
		"release the claim": h.Release,
	}
}

// everything is what the tables hold of the run and the session.
func everything(w *lanetest.World) []table.Item {
	w.T.Helper()
	var all []table.Item
	for _, q := range []table.Query{
		{Table: table.Sessions, PK: w.Ref.PK()},
		{Table: table.Sessions, PK: w.Ref.TranscriptPK("s")},
		{Table: table.Runs, PK: run.Ref{Tenant: w.Ref.Tenant, Run: "r1"}.PK()},
	} {
		p, err := w.Store.Query(w.Ctx(), q)
		if err != nil {
			w.T.Fatal(err)
		}
		all = append(all, p.Items...)
	}
	return all
}

func TestC2_SupersededWriterChangesNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"append a row", "rewrite the base", "ledger row", "change the run", "end the run", "nest", "release the claim"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				w.Accept("r1")
				old := w.Frozen().Start()
				w.Expire()
				w.Resume()
				before := everything(w)
				wantErr(t, attempts(w, old)[name](t.Context()), claim.ErrStale)
				if diff := cmp.Diff(before, everything(w)); diff != "" {
					t.Fatalf("a superseded writer changed (-before +after):\n%s", diff)
				}
			})
		})
	}
}

// A claim that was given up by a commit fences a late goroutine of the same attempt,
// although nobody has taken the claim since.
func TestC2_ALateGoroutineOfAReleasedAttemptChangesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		must(t, h.Release(t.Context()))
		before := everything(w)
		for name, try := range attempts(w, h) {
			if err := try(t.Context()); !errors.Is(err, claim.ErrReleased) {
				t.Errorf("%s: got %v, want ErrReleased", name, err)
			}
		}
		if diff := cmp.Diff(before, everything(w)); diff != "" {
			t.Fatalf("changed (-before +after):\n%s", diff)
		}
	})
}

// Either of the two alone would let a twin of the holder through.
func TestC2_TokenAndOwnerAreCheckedTogether(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]table.Op{
		"the owner is gone":   {Remove: []table.Path{table.P(session.AttrOwner)}},
		"the owner is a twin": {Set: []table.SetOp{{Path: table.P(session.AttrOwner), Value: "r1#2"}}},
		"the token has grown": {Add: []table.AddOp{{Path: table.P(session.AttrToken), N: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				w.Accept("r1")
				h := w.Start()
				op := op
				op.Kind, op.Key, op.If = table.Update, w.Ref.MetaKey(), table.Exists()
				_, err := w.Store.Write(t.Context(), op)
				must(t, err)
				before := everything(w)
				wantErr(t, commit(h, w, row(w.Ref, "000000000001")), claim.ErrStale)
				if diff := cmp.Diff(before, everything(w)); diff != "" {
					t.Fatalf("changed (-before +after):\n%s", diff)
				}
			})
		})
	}
}

func TestC2_ACommitIsAllOrNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		must(t, h.Commit(t.Context(), claim.Tx{Head: 1, Ops: []table.Op{row(w.Ref, "000000000001")}}))
		err := h.Commit(t.Context(), claim.Tx{Head: 2, Ops: []table.Op{row(w.Ref, "000000000002"), row(w.Ref, "000000000001")}})
		ce, ok := table.Failed(err)
		if !ok || ce.Op != 1 {
			t.Fatalf("got %v, want a failed condition of the caller's second op", err)
		}
		if m := w.Meta(); m.Head != 1 || there(w, row(w.Ref, "000000000002").Key) {
			t.Fatalf("a part was written: head %d", m.Head)
		}
		must(t, h.Commit(t.Context(), claim.Tx{Head: 2, Ops: []table.Op{row(w.Ref, "000000000002")}}))
	})
}

func TestC2_AFurtherConditionRefusesWithoutLosingTheClaim(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		h := w.Start()
		err := h.Commit(t.Context(), claim.Tx{Head: 1, If: table.Equal(table.P(session.AttrMailN), int64(0))})
		var refused *claim.RefusedError
		if !errors.As(err, &refused) || refused.Meta.Active != "r1" {
			t.Fatalf("got %v, want a RefusedError with the item that was there", err)
		}
		if w.Meta().Head != 0 {
			t.Fatal("a refused commit was written")
		}
		must(t, commit(h, w))
	})
}

// The frozen writer of F4: it thaws behind its successor and tries everything. The
// counter rises by one, not by the number of tries.
func TestF4_AFrozenWriterIsCountedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		frozen := w.Frozen().Start()
		w.Expire()
		next := w.Resume()
		must(t, next.Commit(t.Context(), claim.Tx{Head: 1, Ops: []table.Op{row(w.Ref, "000000000001")}}))
		before := everything(w)
		for name, try := range attempts(w, frozen) {
			if err := try(t.Context()); !errors.Is(err, claim.ErrStale) {
				t.Errorf("%s: got %v, want ErrStale", name, err)
			}
		}
		if err := frozen.Fresh(); !errors.Is(err, claim.ErrStale) {
			t.Errorf("a superseded writer may still post: %v", err)
		}
		if diff := cmp.Diff(before, everything(w)); diff != "" {
			t.Fatalf("changed (-before +after):\n%s", diff)
		}
		if n := w.Log.Count("stale_writer"); n != 1 {
			t.Fatalf("stale_writer was counted %d times", n)
		}
		must(t, next.Commit(t.Context(), claim.Tx{Head: 2, Ops: []table.Op{row(w.Ref, "000000000002")}}))
	})
}

// Commits of many goroutines come one after another: none meets another's write id.
func TestC6_CommitsOfOneHolderAreSerialised(t *testing.T) {
	t.Parallel()
	for name, parentEnded := range map[string]bool{"while it runs": false, "after its context has ended": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *lanetest.World) {
				w.Accept("r1")
				m := w.Meta()
				p, _ := m.Lowest()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				h, err := w.Claims.Start(ctx, m, p)
				must(t, err)
				defer h.Close()
				if parentEnded {
					cancel()
				}
				var wg sync.WaitGroup
				for range 12 {
					wg.Go(func() {
						err := h.Commit(t.Context(), claim.Tx{Add: []table.AddOp{{Path: table.P("n"), N: 1}}})
						if err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				it := stable(w)
				if n := it.Attrs.Int("n"); n != 12 {
					t.Fatalf("%d of 12 commits were made", n)
				}
			})
		})
	}
}
