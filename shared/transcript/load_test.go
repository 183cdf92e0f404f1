package transcript_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"laneway/shared/model"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/shared/transcript"
)

// appendRow writes a row as a commit does.
func appendRow(t rapid.TB, l *transcript.Log, ref session.Ref, sid string, e transcript.Entry) {
	t.Helper()
	op, err := l.Put(context.Background(), ref, sid, e)
	if err == nil {
		_, err = l.Store.Write(context.Background(), op)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func message(seq int64, text string) transcript.Entry {
	return transcript.Entry{
		Seq: seq, ID: fmt.Sprint("id-", seq), Type: transcript.Message, Role: model.User,
		Content: []model.Block{{Type: model.Text, Text: text}},
	}
}

func seqs(rows []transcript.Entry) string {
	var out []int64
	for _, e := range rows {
		out = append(out, e.Seq)
	}
	return fmt.Sprint(out)
}

func TestRange_FollowsShortPages(t *testing.T) {
	t.Parallel()
	l, ref := setup(t, 23)
	l.Cache = nil
	l.Store = faulty.New(l.Store, faulty.Config{PageItems: 4})
	got, err := l.Range(t.Context(), ref, "sid", 2, 20)
	must(t, err)
	if len(got) != 19 || got[0].Seq != 2 || got[18].Seq != 20 {
		t.Fatalf("read %s", seqs(got))
	}
	if got[1].Text() != "small" || len(got[2].Text()) != transcript.MaxRow {
		t.Fatal("the rows are not what was written")
	}
}

func TestRange_OfNothing(t *testing.T) {
	t.Parallel()
	l, ref := setup(t, 3)
	for name, c := range map[string]struct {
		sid      string
		from, to int64
	}{"no head": {"sid", 1, 0}, "no session id": {"", 1, 3}} {
		if got, err := l.Range(t.Context(), ref, c.sid, c.from, c.to); len(got) != 0 || err != nil {
			t.Errorf("%s: %s, %v", name, seqs(got), err)
		}
	}
}

// hiding is a store whose queries leave out a row for some times: a page is no
// snapshot.
type hiding struct {
	table.Store
	sk    string
	times int
}

func (h *hiding) Query(ctx context.Context, q table.Query) (table.Page, error) {
	p, err := h.Store.Query(ctx, q)
	if h.times > 0 {
		h.times--
		for i := range p.Items {
			if p.Items[i].Key.SK == h.sk {
				p.Items = append(p.Items[:i:i], p.Items[i+1:]...)
				break
			}
		}
	}
	return p, err
}

func TestRange_ATornReadIsReadAgain(t *testing.T) {
	t.Parallel()
	for name, sk := range map[string]string{"in the middle": transcript.RowSK(4), "the first": transcript.RowSK(1), "the last": transcript.RowSK(7)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, ref := setup(t, 7)
			l.Store = &hiding{l.Store, sk, 2}
			got, err := l.Range(t.Context(), ref, "sid", 1, 7)
			must(t, err)
			if s := seqs(got); s != "[1 2 3 4 5 6 7]" {
				t.Fatalf("read %s", s)
			}
		})
	}
}

func TestRange_RowsThatStayMissingAreAnError(t *testing.T) {
	t.Parallel()
	l, ref := setup(t, 7)
	l.Store = &hiding{l.Store, transcript.RowSK(4), 100}
	if got, err := l.Range(t.Context(), ref, "sid", 1, 7); !errors.Is(err, transcript.ErrTorn) {
		t.Fatalf("read %s, %v; want ErrTorn", seqs(got), err)
	}
	// And nothing of it is kept as if it were whole.
	l.Store = l.Store.(*hiding).Store
	got, err := l.Range(t.Context(), ref, "sid", 1, 7)
	must(t, err)
	if s := seqs(got); s != "[1 2 3 4 5 6 7]" {
		t.Fatalf("read %s", s)
	}
}

func TestContext_BeginsAtTheBase(t *testing.T) {
	t.Parallel()
	l, ref := setup(t, 7)
	got, err := l.Context(t.Context(), session.Meta{Ref: ref, SessionID: "sid", Base: 3, Head: 6})
	must(t, err)
	if s := seqs(got); s != "[3 4 5 6]" {
		t.Fatalf("read %s", s)
	}
}

func TestPut_ALargeRowGoesToTheBlobStore(t *testing.T) {
	t.Parallel()
	l, ref := setup(t, 0)
	text := strings.Repeat("ü", transcript.MaxRow/2)
	op, err := l.Put(t.Context(), ref, "sid", message(1, text))
	must(t, err)
	if n := (&table.Item{Key: op.Key, Attrs: op.Item}).Size(); n > 1<<10 {
		t.Errorf("the table gets %d bytes of it", n)
	}
	_, err = l.Store.Write(t.Context(), op)
	must(t, err)
	got, err := l.Range(t.Context(), ref, "sid", 1, 1)
	must(t, err)
	if got[0].Text() != text || got[0].ID != "id-1" {
		t.Error("another row came back")
	}
	small, err := l.Put(t.Context(), ref, "sid", message(2, strings.Repeat("x", transcript.MaxRow-500)))
	must(t, err)
	if small.Item.Str("blob") != "" {
		t.Error("a row that fits went to the blob store")
	}
}

// A writer that lost its claim has written a body already: it stands under a name of
// its own and changes nothing that anybody reads.
func TestC2_TheBlobOfASupersededWriterIsReadByNobody(t *testing.T) {
	t.Parallel()
	l, ref := setup(t, 0)
	winner, loser := message(1, strings.Repeat("w", transcript.MaxRow)), message(1, strings.Repeat("l", transcript.MaxRow))
	winner.ID, loser.ID = "winner", "loser"
	appendRow(t, l, ref, "sid", winner)
	op, err := l.Put(t.Context(), ref, "sid", loser)
	must(t, err)
	if _, err := l.Store.Write(t.Context(), op); !errors.Is(err, table.ErrCondition) {
		t.Fatalf("a row was written twice: %v", err)
	}
	got, err := l.Range(t.Context(), ref, "sid", 1, 1)
	must(t, err)
	if got[0].ID != "winner" || got[0].Text()[0] != 'w' {
		t.Fatalf("read the row of %s", got[0].ID)
	}
}

func TestPut_WithoutABlobStoreALargeRowIsRefused(t *testing.T) {
	t.Parallel()
	l, ref := setup(t, 0)
	l.Blobs = nil
	op, err := l.Put(t.Context(), ref, "sid", message(1, strings.Repeat("x", 500<<10)))
	must(t, err)
	if _, err := l.Store.Write(t.Context(), op); !errors.Is(err, table.ErrTooLarge) {
		t.Fatalf("got %v, want ErrTooLarge", err)
	}
}

func TestEntry_ComesBackAsItWas(t *testing.T) {
	t.Parallel()
	l, ref := setup(t, 0)
	e := transcript.Entry{
		Seq: 1, ID: "i", Type: transcript.Message, RunID: "r", At: 12345, Key: "r:assistant", Role: model.Assistant,
		Content: []model.Block{
			{Type: model.Thinking, Thinking: "hm", Signature: "sig"},
			{Type: model.Text, Text: "a\u2028<b>&"},
			{Type: model.ToolCall, ID: "c_1", Name: "read", Arguments: []byte(`{"path":"x"}`)},
			{Type: model.Image, MimeType: "image/png", Data: []byte{0, 1, 255}},
		},
		StopReason: "toolUse", Usage: &model.Usage{Input: 1, Output: 2, CacheRead: 3}, Provider: "p", Model: "m",
		Abort: &transcript.Abort{Aborted: true, Origin: "rpc", RunID: "r"}, Silent: true, Details: map[string]any{"a": "b"},
	}
	appendRow(t, l, ref, "sid", e)
	got, err := l.Range(t.Context(), ref, "sid", 1, 1)
	must(t, err)
	if diff := cmp.Diff(e, got[0]); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
}

// Whatever is read, kept and pushed out: a log with a cache gives what one without
// gives, and the cache keeps its bound.
func TestCache_NeverServesWrongRows(t *testing.T) {
	t.Parallel()
	plain, ref := setup(t, 0)
	plain.Cache = nil
	world := 0
	rapid.Check(t, func(t *rapid.T) {
		world++
		own := session.Ref{Tenant: ref.Tenant, Key: fmt.Sprint("agent:main:w", world)}
		cached := &transcript.Log{Store: plain.Store, Blobs: plain.Blobs, Cache: &transcript.Cache{Max: rapid.SampledFrom([]int{1, 1200, 5000, 1 << 20}).Draw(t, "max")}}
		sids := []string{"a", "b", "c"}
		heads := make(map[string]int64)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			sid := rapid.SampledFrom(sids).Draw(t, "sid")
			if rapid.Bool().Draw(t, "append") || heads[sid] == 0 {
				var rows []transcript.Entry
				for range rapid.IntRange(1, 4).Draw(t, "rows") {
					heads[sid]++
					e := message(heads[sid], fmt.Sprint(sid, heads[sid]))
					appendRow(t, plain, own, sid, e)
					rows = append(rows, e)
				}
				if rapid.Bool().Draw(t, "keep") {
					cached.Keep(own.TranscriptPK(sid), rows)
				}
				continue
			}
			from := rapid.Int64Range(1, heads[sid]).Draw(t, "from")
			to := rapid.Int64Range(from, heads[sid]).Draw(t, "to")
			want, err := plain.Range(context.Background(), own, sid, from, to)
			if err != nil {
				t.Fatal(err)
			}
			got, err := cached.Range(context.Background(), own, sid, from, to)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s %d..%d (-want +got):\n%s", sid, from, to, diff)
			}
			if len(got) > 0 && rapid.Bool().Draw(t, "scribble") {
				got[0].ID = "scribbled" // the slice is the caller's
			}
		}
	})
}

func TestCache_SavesTheSecondReading(t *testing.T) {
	t.Parallel()
	l, ref := setup(t, 5)
	s := faulty.New(l.Store, faulty.Config{})
	l.Store, l.Cache = s, &transcript.Cache{Max: 16 << 20}
	for range 3 {
		_, err := l.Range(t.Context(), ref, "sid", 1, 5)
		must(t, err)
	}
	if s.Calls() != 1 {
		t.Fatalf("%d readings of what never changes", s.Calls())
	}
	e := message(6, "new")
	appendRow(t, l, ref, "sid", e)
	l.Keep(ref.TranscriptPK("sid"), []transcript.Entry{e})
	before := s.Calls()
	got, err := l.Range(t.Context(), ref, "sid", 1, 6)
	must(t, err)
	if s.Calls() != before || got[5].Text() != "new" {
		t.Fatalf("read again: %d calls, %s", s.Calls()-before, seqs(got))
	}
}

func TestCache_IsForManyGoroutines(t *testing.T) {
	t.Parallel()
	l, ref := setup(t, 8)
	l.Cache = &transcript.Cache{Max: 900 << 10} // one large row and a few small ones
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 20 {
				from := int64((n+i)%8 + 1)
				got, err := l.Range(context.Background(), ref, "sid", from, 8)
				if err != nil || len(got) != int(9-from) || got[0].Seq != from {
					t.Errorf("from %d: %s, %v", from, seqs(got), err)
				}
			}
		})
	}
	wg.Wait()
}
