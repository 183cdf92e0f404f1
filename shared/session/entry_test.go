package session_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/bolt"
)

func store(t *testing.T) table.Store {
	t.Helper()
	s, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "t.db"), NoSync: true})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var ref = session.Ref{Tenant: "default", Key: "agent:main:s"}

// TestUpdateEntry_LosesNoChange: changes at the same time are all there, also beside
// one that writes the entry whole.
func TestUpdateEntry_LosesNoChange(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := store(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				for { // the tries of one call are bounded, a crowd may need more
					_, err := session.UpdateEntry(ctx, s, ref, func(e *session.Entry) error { e.InputTokens++; return nil })
					if err == nil {
						break
					}
					if !errors.Is(err, table.ErrConflict) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	e, err := session.LoadEntry(ctx, s, ref)
	if err != nil || e.InputTokens != 40 {
		t.Errorf("%d of 40 changes, %v", e.InputTokens, err)
	}
	calls := 0
	e, err = session.UpdateEntry(ctx, s, ref, func(e *session.Entry) error {
		if calls++; calls == 1 {
			op, err := session.PutEntry(ref, session.Entry{Label: "whole"})
			must(t, err)
			_, err = s.Write(ctx, op)
			must(t, err)
		}
		e.Category = "c"
		return nil
	})
	if err != nil || calls != 2 || e.Label != "whole" || e.Category != "c" || e.InputTokens != 0 {
		t.Errorf("%d calls, %+v, %v", calls, e, err)
	}
	refused := errors.New("no")
	if _, err := session.UpdateEntry(ctx, s, ref, func(*session.Entry) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
}

func TestCreate_MakesASessionOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := store(t)
	now := time.UnixMilli(1_700_000_000_000)
	_, err := s.Write(ctx, session.Create(ref, "one", now)...)
	must(t, err)
	if _, err := s.Write(ctx, session.Create(ref, "two", now)...); !errors.Is(err, table.ErrCondition) {
		t.Errorf("made again: %v", err)
	}
	m, err := session.LoadMeta(ctx, s, ref)
	if err != nil || m.SessionID != "one" || !m.Exists() || m.Busy {
		t.Errorf("%+v, %v", m, err)
	}
	for id, want := range map[string]string{"one": ref.Key, "two": ""} {
		if key, err := session.KeyOfID(ctx, s, ref.Tenant, id); err != nil || key != want {
			t.Errorf("%s: %q, %v", id, key, err)
		}
	}
	if key, err := session.KeyOfID(ctx, s, "acme", "one"); err != nil || key != "" {
		t.Errorf("K2: another tenant finds %q, %v", key, err)
	}
	page, err := s.Index(ctx, table.IndexQuery{Table: table.Sessions, Index: table.IndexRecent, PK: session.RecentPK(ref.Tenant)})
	if err != nil || len(page.Keys) != 1 {
		t.Errorf("%d in the list, %v", len(page.Keys), err)
	}
	_, err = s.Write(ctx, session.DropID(ref, "one"))
	must(t, err)
	if key, err := session.KeyOfID(ctx, s, ref.Tenant, "one"); err != nil || key != "" {
		t.Errorf("dropped: %q, %v", key, err)
	}
}
