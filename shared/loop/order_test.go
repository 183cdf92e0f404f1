package loop_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"laneway/shared/model"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/shared/tool"
)

func block(id, name string) model.Block {
	return model.Block{ID: id, Name: name, Arguments: []byte(`{}`)}
}

// writes records the writes of a process.
type writes struct {
	mu  sync.Mutex
	all [][]table.Op
}

func (w *writes) hook() func(faulty.Call) faulty.Fault {
	return onWrite(func(_ int, ops []table.Op) faulty.Fault {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all = append(w.all, ops)
		return faulty.None
	})
}

// TestL1_AStepIsStoredBeforeTheNextBegins: what the model is asked is in the tables
// before it is asked, the message with its calls before a tool runs, the results in
// call order although they come in another one.
func TestL1_AStepIsStoredBeforeTheNextBegins(t *testing.T) {
	t.Parallel()
	var w *world
	slow, fast := newTool("slow", tool.ReadOnly), newTool("fast", tool.ReadOnly)
	fastDone := make(chan struct{})
	head := func() int64 { return w.meta().Head }
	fast.run = func(context.Context, tool.Call) (tool.Result, error) {
		defer close(fastDone)
		if head() != 2 {
			t.Errorf("a tool begins at head %d, want user and message", head())
		}
		return tool.TextResult("fast"), nil
	}
	slow.run = func(context.Context, tool.Call) (tool.Result, error) {
		<-fastDone
		return tool.TextResult("slow"), nil
	}
	w = newWorld(t, slow, fast)
	w.model.on(
		func(ctx context.Context, r model.Request, yield func(model.Part, error) bool) {
			callTools(block("a", "slow"), block("b", "fast"))(ctx, r, yield)
		},
		func(ctx context.Context, r model.Request, yield func(model.Part, error) bool) {
			if head() != 4 {
				t.Errorf("the model is asked again at head %d", head())
			}
			say("end")(ctx, r, yield)
		})
	c := w.connect()
	w.accept(c, "r1", "hi")
	w.process(nil).serve()
	var got []string
	for _, e := range w.rows() {
		got = append(got, string(e.Role)+" "+e.ToolCallID+e.Text())
	}
	want := []string{"user hi", "assistant ", "toolResult aslow", "toolResult bfast", "assistant end"}
	if !slices.Equal(got, want) {
		t.Errorf("rows %q", got)
	}
}

// TestL1_ManyCallsGoAsSeveralCommits: a message with more calls than a transaction
// holds, and results with more bytes.
func TestL1_ManyCallsGoAsSeveralCommits(t *testing.T) {
	t.Parallel()
	const calls = 150
	big := newTool("big", tool.Unsafe)
	big.run = func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.TextResult(c.ID + strings.Repeat("x", 30_000)), nil
	}
	w := newWorld(t, big)
	blocks := make([]model.Block, calls)
	for i := range blocks {
		blocks[i] = block(fmt.Sprintf("c%03d", i), "big")
		blocks[i].Arguments = fmt.Appendf(nil, `{"n":%d}`, i)
	}
	w.model.on(callTools(blocks...), say("end"))
	c := w.connect("tool-events")
	w.accept(c, "r1", "hi")
	var rec writes
	w.process(rec.hook()).serve()
	for _, ops := range rec.all {
		size := 0
		for _, o := range ops {
			size += (&table.Item{Key: o.Key, Attrs: o.Item}).Size()
		}
		if len(ops) > 90 || size > 3<<20+300<<10 {
			t.Errorf("a commit of %d ops and %d bytes", len(ops), size)
		}
	}
	if big.count() != calls {
		t.Errorf("%d calls were made", big.count())
	}
	rows := w.rows()
	if len(rows) != calls+3 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, e := range rows[2 : 2+calls] {
		if e.ToolCallID != blocks[i].ID || !strings.HasPrefix(e.Text(), blocks[i].ID) {
			t.Fatalf("row %d is of %s", i+2, e.ToolCallID)
		}
	}
	if got := len(c.all(event("agent", "tool", "result"))); got != calls {
		t.Errorf("%d results told", got)
	}
	if text(w.reply(c, "r1")) != "end" {
		t.Errorf("final %v", w.reply(c, "r1"))
	}
}

// TestL1_LargeRowsGoToTheBlobStore: a row that an item has no room for, and an answer
// that the record has none for.
func TestL1_LargeRowsGoToTheBlobStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("long ", 150_000)
	w.model.on(say(long), func(ctx context.Context, r model.Request, yield func(model.Part, error) bool) {
		if got := r.Messages[1].Content[0].Text; got != long {
			t.Errorf("the model gets %d bytes of its answer", len(got))
		}
		say("short")(ctx, r, yield)
	})
	c := w.connect()
	w.accept(c, "r1", "hi")
	w.process(nil).serve()
	w.accept(c, "r2", "again")
	w.process(nil).serve() // another process: nothing is in its cache
	f := w.reply(c, "r1")
	if got := text(f); !strings.HasPrefix(long, got) || len(got) < 50_000 || f["ok"] != true {
		t.Errorf("a final of %d bytes", len(got))
	}
	it, err := w.store.Get(t.Context(), table.Key{Table: table.Sessions, PK: ref.TranscriptPK(w.meta().SessionID), SK: "000000000002"})
	must(t, err)
	if it.Size() > 1000 {
		t.Errorf("a row of %d bytes in the table", it.Size())
	}
	if text(w.reply(c, "r2")) != "short" {
		t.Errorf("final %v", w.reply(c, "r2"))
	}
}
