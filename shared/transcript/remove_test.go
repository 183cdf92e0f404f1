package transcript_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"laneway/shared/blob/dir"
	"laneway/shared/model"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/bolt"
	"laneway/shared/transcript"
)

// setup is a log over real stores with a transcript of n rows, every third of which
// is too large for the table.
func setup(t *testing.T, n int) (*transcript.Log, session.Ref) {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "t.db"), NoSync: true})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	blobs, err := dir.Open(dir.Config{Path: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { must(t, blobs.Close()) })
	l := &transcript.Log{Store: store, Blobs: blobs, Cache: &transcript.Cache{Max: 1 << 20}}
	ref := session.Ref{Tenant: "default", Key: "agent:main:s"}
	for i := range n {
		e := transcript.Entry{Seq: int64(i) + 1, ID: fmt.Sprint("r", i), Type: transcript.Message, Role: model.User}
		text := "small"
		if i%3 == 0 {
			text = strings.Repeat("x", transcript.MaxRow)
		}
		e.Content = []model.Block{{Type: model.Text, Text: text}}
		op, err := l.Put(context.Background(), ref, "sid", e)
		must(t, err)
		_, err = store.Write(context.Background(), op)
		must(t, err)
	}
	return l, ref
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRemove_TakesRowsAndTheirBodies(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	l, ref := setup(t, 30)
	rows, err := l.Range(ctx, ref, "sid", 1, 30)
	must(t, err)
	if len(rows) != 30 {
		t.Fatalf("%d rows", len(rows))
	}
	must(t, l.Remove(ctx, ref, "another"))
	if _, err := l.Range(ctx, ref, "sid", 1, 30); err != nil {
		t.Fatal("rows of another transcript are gone")
	}
	must(t, l.Remove(ctx, ref, "sid"))
	page, err := l.Store.Query(ctx, table.Query{Table: table.Sessions, PK: ref.TranscriptPK("sid")})
	must(t, err)
	keys, err := l.Blobs.List(ctx, "transcript/", "", 100)
	must(t, err)
	if len(page.Items) != 0 || len(keys) != 0 {
		t.Errorf("%d rows and %d bodies are left", len(page.Items), len(keys))
	}
	if _, err := l.Range(ctx, ref, "sid", 1, 30); err == nil {
		t.Error("the cache still has the rows")
	}
	must(t, l.Remove(ctx, ref, "sid"))
}

func TestSpan_IsWhatPeopleSee(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	l, ref := setup(t, 4)
	op, err := l.Put(ctx, ref, "sid", transcript.Entry{Seq: 5, ID: "b", Type: transcript.Reset})
	must(t, err)
	_, err = l.Store.Write(ctx, op)
	must(t, err)
	m := session.Meta{Ref: ref, SessionID: "sid", Head: 5}
	for _, c := range []struct {
		base int64
		id   string
		want transcript.Span
	}{
		{0, "", transcript.Span{SessionID: "sid", Last: 5}},
		{5, "", transcript.Span{SessionID: "sid", Floor: 5, Last: 5}},
		{2, "sid", transcript.Span{SessionID: "sid", Last: 5}}, // kept by a compaction: hides nothing
		{5, "other", transcript.Span{SessionID: "other"}},
	} {
		m.Base = c.base
		got, err := l.Span(ctx, &m, c.id)
		if err != nil || got != c.want {
			t.Errorf("base %d, %q: %+v, %v; want %+v", c.base, c.id, got, err, c.want)
		}
	}
	m.SessionID, m.Base = "later", 0
	if got, err := l.Span(ctx, &m, "sid"); err != nil || got != (transcript.Span{SessionID: "sid", Last: 5}) {
		t.Errorf("%+v, %v", got, err)
	}
}
