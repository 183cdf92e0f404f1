package bolt

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"laneway/shared/table"
)

// committer is a Store whose committer has ended, so that a test can be the committer.
func committer(t *testing.T) *Store {
	t.Helper()
	s, err := Open(Config{Path: filepath.Join(t.TempDir(), "tables.db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	close(s.closing)
	<-s.closed
	t.Cleanup(func() {
		if err := s.db.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func member(ctx context.Context, ops ...table.Op) *request {
	return &request{ended: ctx.Err, ops: ops, done: make(chan outcome, 1)}
}

func key(sk string) table.Key { return table.Key{Table: table.Runs, PK: "p", SK: sk} }

func add(sk string, n int64, c table.Cond) table.Op {
	return table.Op{Kind: table.Update, Key: key(sk), Add: []table.AddOp{{Path: table.P("n"), N: n}}, If: c}
}

func (s *Store) number(t *testing.T, sk string) int64 {
	t.Helper()
	it, err := s.Get(t.Context(), key(sk))
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		t.Fatal(err)
	}
	return it.Attrs.Int("n")
}

func TestMembersOfAGroupSeeThoseBeforeThem(t *testing.T) {
	t.Parallel()
	s := committer(t)
	is := func(n int64) table.Cond { return table.Equal(table.P("n"), n) }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	group := []*request{
		member(t.Context(), add("x", 1, table.NotExists())),
		member(t.Context(), add("x", 1, is(1))),
		member(t.Context(), add("y", 9, nil), add("x", 1, is(1))), // too late: x is 2
		member(ended, add("x", 100, nil)),
		member(t.Context(), table.Op{Kind: table.Put, Key: key("y"), Item: table.Attrs{"n": int64(5)}, If: table.NotExists()}, add("x", 1, is(2))),
		member(t.Context(), add("x", 1, nil), table.Op{Kind: table.Update, Key: key("y"), AddTo: []table.MemberOp{{Attr: "n", Members: table.Set{"a"}}}}),
	}
	if err := s.commit(group); err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{nil, nil, table.ErrCondition, context.Canceled, nil, table.ErrInvalid} {
		out := <-group[i].done
		if !errors.Is(out.err, want) {
			t.Errorf("member %d: got %v, want %v", i, out.err, want)
		}
		if c, ok := table.Failed(out.err); ok && (c.Op != 1 || c.Found.Attrs.Int("n") != 2) {
			t.Errorf("member %d: failed at op %d over %v", i, c.Op, c.Found)
		}
	}
	if x, y := s.number(t, "x"), s.number(t, "y"); x != 3 || y != 5 {
		t.Errorf("x is %d, y is %d", x, y)
	}
}

// A member that the file refuses (here by a key that Validate would not let through)
// gets its error, and the others are done once.
func TestMemberThatSpoilsTheTransactionIsLeftOut(t *testing.T) {
	t.Parallel()
	s := committer(t)
	group := []*request{
		member(t.Context(), add("x", 1, nil)),
		member(t.Context(), add("x", 10, nil), add(strings.Repeat("k", 40_000), 1, nil)),
		member(t.Context(), add("x", 1, nil)),
	}
	bad := group[1]
	if err := s.commit(group); err != nil {
		t.Fatal(err)
	}
	if out := <-bad.done; out.err == nil {
		t.Error("the spoiling member has no error")
	}
	if n := s.number(t, "x"); n != 2 {
		t.Errorf("x is %d, want 2", n)
	}
}

// After a commit that failed nobody knows what is in the file; nothing more is written.
func TestFailedCommitEndsWriting(t *testing.T) {
	t.Parallel()
	s, err := Open(Config{Path: filepath.Join(t.TempDir(), "tables.db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := s.Write(t.Context(), add("x", 1, nil)); err != nil {
		t.Fatal(err)
	}
	s.db.MaxSize = 1 // the next growth of the file fails; the committer is idle now
	big := table.Op{Kind: table.Put, Item: table.Attrs{"v": strings.Repeat("x", 300<<10)}}
	for i := 0; ; i++ {
		big.Key = key(strings.Repeat("b", i+1))
		if _, err = s.Write(t.Context(), big); err != nil {
			break
		}
		if i == 200 {
			t.Fatal("the file never grew")
		}
	}
	if !errors.Is(err, table.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	if _, err := s.Write(t.Context(), add("x", 1, nil)); !errors.Is(err, table.ErrClosed) {
		t.Errorf("next write: got %v, want ErrClosed", err)
	}
	if n := s.number(t, "x"); n != 1 {
		t.Errorf("x is %d, want 1: reading goes on", n)
	}
}
