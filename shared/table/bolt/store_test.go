package bolt_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"laneway/shared/meter"
	"laneway/shared/table"
	"laneway/shared/table/bolt"
	"laneway/shared/table/tabletest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("BOLT_TEST_VICTIM"); path != "" {
		os.Exit(victim(path))
	}
	goleak.VerifyTestMain(m) // every committer has ended when the tests have
}

func key(sk string) table.Key { return table.Key{Table: table.Runs, PK: "p", SK: sk} }

func TestReopenedFileHasEverything(t *testing.T) {
	t.Parallel()
	c := bolt.Config{Path: filepath.Join(t.TempDir(), "new", "directory", "tables.db")}
	want := table.Attrs{"s": "x", "n": int64(-1), "m": table.Map{"a.b": []byte{1}}, "set": table.Set{"a"}, "l": []string{"y"}, "t": true}
	s, err := bolt.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), table.Op{Kind: table.Put, Key: key("x"), Item: want}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	it, err := open(t, c).Get(t.Context(), key("x"))
	if d := cmp.Diff(want, it.Attrs); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func TestFileIsOpenOnce(t *testing.T) {
	t.Parallel()
	c := bolt.Config{Path: filepath.Join(t.TempDir(), "tables.db"), LockTimeout: time.Millisecond}
	first := open(t, c)
	if _, err := bolt.Open(c); !errors.Is(err, bolt.ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, c)
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	if _, err := bolt.Open(bolt.Config{}); err == nil {
		t.Error("no path, no error")
	}
	path := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(path, make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bolt.Open(bolt.Config{Path: path}); err == nil {
		t.Error("a file of something else was opened")
	}
}

func TestClosedStoreSaysSo(t *testing.T) {
	t.Parallel()
	s := open(t, bolt.Config{NoSync: true})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := 0; ; n++ {
				_, err := s.Write(t.Context(), table.Op{Kind: table.Put, Key: key(fmt.Sprint(i, "/", n))})
				if err != nil {
					if !errors.Is(err, table.ErrClosed) {
						t.Errorf("Write: got %v, want ErrClosed", err)
					}
					return
				}
				if n == 20 && i == 0 {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if _, err := s.Get(t.Context(), key("x")); !errors.Is(err, table.ErrClosed) {
		t.Errorf("Get: got %v", err)
	}
	if _, err := s.Query(t.Context(), table.Query{Table: table.Runs, PK: "p"}); !errors.Is(err, table.ErrClosed) {
		t.Errorf("Query: got %v", err)
	}
	if _, err := s.Sweep(t.Context(), time.Now()); !errors.Is(err, table.ErrClosed) {
		t.Errorf("Sweep: got %v", err)
	}
}

func TestReadersSeeNoHalfTransaction(t *testing.T) {
	t.Parallel()
	s := open(t, bolt.Config{NoSync: true})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for n := int64(0); ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				a := table.Attrs{"n": n, "w": int64(w)}
				if _, err := s.Write(t.Context(), table.Op{Kind: table.Put, Key: key("left"), Item: a}, table.Op{Kind: table.Put, Key: key("right"), Item: a}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 2000 {
		p, err := s.Query(t.Context(), table.Query{Table: table.Runs, PK: "p"})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Items) == 2 && !cmp.Equal(p.Items[0].Attrs, p.Items[1].Attrs) || len(p.Items) == 1 {
			t.Fatalf("half a transaction: %v", p.Items)
		}
	}
	close(stop)
	wg.Wait()
}

func TestSweepRemovesWhatHasExpired(t *testing.T) {
	t.Parallel()
	s := open(t, bolt.Config{NoSync: true})
	now := time.Unix(1_000_000, 0)
	put := func(sk string, expires any) {
		t.Helper()
		op := table.Op{Kind: table.Put, Key: table.Key{Table: table.Sessions, PK: "p", SK: sk}, Item: table.Attrs{"activePk": "A", "activeSk": sk}}
		if expires != nil {
			op.Item[table.TTLAttr] = expires
		}
		if _, err := s.Write(t.Context(), op); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 250 {
		put(fmt.Sprintf("old%03d", i), now.Unix()-int64(i))
	}
	put("later", now.Unix()+1)
	put("never", nil)
	put("zero", int64(0))
	put("text", "1")
	put("moved", int64(5))
	put("moved", now.Unix()+9)
	put("dropped", int64(5))
	put("dropped", nil)
	if n, err := s.Sweep(t.Context(), now); n != 250 || err != nil {
		t.Errorf("swept %d, %v, want 250", n, err)
	}
	left := []string{"dropped", "later", "moved", "never", "text", "zero"}
	p, err := s.Query(t.Context(), table.Query{Table: table.Sessions, PK: "p"})
	x, xerr := s.Index(t.Context(), table.IndexQuery{Table: table.Sessions, Index: table.IndexActive, PK: "A"})
	if err != nil || xerr != nil || len(p.Items) != len(left) || len(x.Keys) != len(left) {
		t.Fatalf("%v, %v: %d items and %d index entries left", err, xerr, len(p.Items), len(x.Keys))
	}
	for i, it := range p.Items {
		if it.Key.SK != left[i] || x.Keys[i].SK != left[i] {
			t.Errorf("left: %s, in the index %s, want %s", it.Key.SK, x.Keys[i].SK, left[i])
		}
	}
	if n, err := s.Sweep(t.Context(), now); n != 0 || err != nil {
		t.Errorf("again: swept %d, %v", n, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Sweep(ended, now); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

func TestUnitsAreCountedByTheRulesOfDynamoDB(t *testing.T) {
	t.Parallel()
	s := open(t, bolt.Config{NoSync: true})
	var m meter.Meter
	ctx := meter.With(t.Context(), &m)
	put := func(sk string, c table.Cond) table.Op {
		return table.Op{Kind: table.Put, Key: key(sk), Item: table.Attrs{"v": make([]byte, 1500)}, If: c}
	}
	if _, err := s.Write(ctx, put("a", table.NotExists())); err != nil { // 2
		t.Fatal(err)
	}
	if _, err := s.Write(ctx, put("b", nil), put("c", nil)); err != nil { // 8
		t.Fatal(err)
	}
	if _, err := s.Write(ctx, put("a", table.NotExists())); !errors.Is(err, table.ErrCondition) { // 2
		t.Fatal(err)
	}
	if _, err := s.Get(ctx, key("none")); !errors.Is(err, table.ErrNotFound) { // 1
		t.Fatal(err)
	}
	if _, err := s.Query(ctx, table.Query{Table: table.Runs, PK: "p"}); err != nil { // 2
		t.Fatal(err)
	}
	if _, err := s.Index(ctx, table.IndexQuery{Table: table.Sessions, Index: table.IndexActive, PK: "p"}); err != nil { // 0.5
		t.Fatal(err)
	}
	got := m.Counts()
	if got[meter.TableCalls] != 6 || got[meter.TableWriteUnits] != 12 || got[meter.TableReadUnits] != 3.5 {
		t.Errorf("got %v", got)
	}
}

func TestComparedWithTheReference(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			tabletest.Compare(t, tabletest.NewModel(), open(t, bolt.Config{NoSync: true}))
		})
	}
}

// victim writes rows and says so on stdout after each, until it is killed.
func victim(path string) int {
	s, err := bolt.Open(bolt.Config{Path: path})
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return 1
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			k := key(fmt.Sprint("row", w))
			it, _ := s.Get(context.Background(), k) // absent at first: 0
			for n := it.Attrs.Int("n") + 1; ; n++ {
				_, err := s.Write(context.Background(),
					table.Op{Kind: table.Put, Key: k, Item: table.Attrs{"n": n}},
					table.Op{Kind: table.Update, Key: key("sum"), Add: []table.AddOp{{Path: table.P("n"), N: 1}}})
				if err != nil {
					fmt.Fprintln(os.Stdout, err)
					return
				}
				fmt.Fprintln(os.Stdout, w, n)
			}
		})
	}
	wg.Wait()
	return 1
}

// What was acknowledged is there after kill -9, and every transaction is there whole.
func TestAcknowledgedWritesSurviveKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tables.db")
	acked := make([]int64, 4)
	for round := range 5 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "BOLT_TEST_VICTIM="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, seen := bufio.NewScanner(out), 0
		clear(acked)
		for lines.Scan() {
			var w int
			var n int64
			if _, err := fmt.Sscan(lines.Text(), &w, &n); err != nil {
				t.Fatalf("the writer says: %s", lines.Text())
			}
			acked[w] = n
			if seen++; seen == 50+20*round {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // "signal: killed"
		s, err := bolt.Open(bolt.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for w, n := range acked {
			it, err := s.Get(t.Context(), key(fmt.Sprint("row", w)))
			sum += it.Attrs.Int("n")
			if got := it.Attrs.Int("n"); n > 0 && (err != nil || got < n) {
				t.Errorf("round %d: writer %d was told %d, the file has %d (%v)", round, w, n, got, err)
			}
		}
		if it, err := s.Get(t.Context(), key("sum")); err != nil || it.Attrs.Int("n") != sum {
			t.Errorf("round %d: rows add up to %d, the sum in their transactions is %d (%v)", round, sum, it.Attrs.Int("n"), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
