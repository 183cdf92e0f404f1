package wire

import (
	"errors"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func read(r io.Reader) (out []string, err error) {
	e := NewEvents(r, func() {})
	for {
		ev, err := e.Next()
		if err != nil {
			return out, err
		}
		out = append(out, string(ev.Name)+"="+string(ev.Data))
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"one", "data: a\n\n", "=a"},
		{"named", "event: ping\ndata: a\n\ndata: b\n\n", "ping=a|=b"},
		{"a name without data is dropped", "event: ping\n\ndata: b\n\n", "=b"},
		{"CRLF", "event: x\r\ndata: a\r\n\r\n", "x=a"},
		{"several lines", "data: a\ndata: b\n\n", "=a\nb"},
		{"empty data counts", "data:\n\n", "="},
		{"one space only is cut", "data:  a\n\n", "= a"},
		{"comments, ids, unknown fields", ": hi\nid: 7\nretry: 3\nfoo\ndata: a\n\n", "=a"},
		{"unended event", "data: a\n\ndata: b", "=a|=b"},
		{"unended event with its line end", "data: a\n\ndata: b\n", "=a|=b"},
		{"data with colons", "data: {\"a\":\"b:c\"}\n\n", "={\"a\":\"b:c\"}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for _, r := range []io.Reader{
				strings.NewReader(row.in), iotest.OneByteReader(strings.NewReader(row.in)), iotest.DataErrReader(strings.NewReader(row.in)),
			} {
				got, err := read(r)
				if strings.Join(got, "|") != row.want || !errors.Is(err, io.EOF) {
					t.Errorf("%T: %q, %v; want %q", r, got, err, row.want)
				}
			}
		})
	}
}

func TestEventsSurviveAnySplit(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var in strings.Builder
	var want []string
	for i := range 200 {
		data := strings.Repeat("x", rnd.IntN(70<<10)) + strconv.Itoa(i)
		want = append(want, "="+data)
		in.WriteString("data: " + data + "\n\n")
	}
	got, err := read(&pieces{in.String(), rnd})
	if !errors.Is(err, io.EOF) || strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%d events of %d, %v", len(got), len(want), err)
	}
}

type pieces struct {
	rest string
	rnd  *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.rest == "" {
		return 0, io.EOF
	}
	n := min(1+p.rnd.IntN(50<<10), len(p.rest), len(b))
	copy(b, p.rest[:n])
	p.rest = p.rest[n:]
	return n, nil
}

func TestEventsGiveTheReadersError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	got, err := read(io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken)))
	if len(got) != 1 || !errors.Is(err, broken) {
		t.Errorf("%q, %v", got, err)
	}
}

type endless struct{ line string }

func (e endless) Read(b []byte) (int, error) { return copy(b, e.line), nil }

func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]io.Reader{"a line": endless{strings.Repeat("x", 4096)}, "lines": endless{"data: " + strings.Repeat("x", 1000) + "\n"}} {
		if _, err := read(r); !errors.Is(err, ErrEventTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

func TestFinishReadsWhatIsLeftAndCloses(t *testing.T) {
	t.Parallel()
	rest := strings.NewReader("0\r\n")
	b := &body{Reader: rest}
	cancelled := false
	Finish(b, func() { cancelled = true })
	if rest.Len() != 0 || !b.closed || !cancelled {
		t.Errorf("left = %d, closed = %v, cancelled = %v", rest.Len(), b.closed, cancelled)
	}
}

func TestFinishCutsABodyThatStaysOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		b := &body{Reader: r}
		start := time.Now()
		Finish(b, func() { _ = w.CloseWithError(io.ErrClosedPipe) })
		if took := time.Since(start); took != drainTime || !b.closed {
			t.Errorf("took %s, closed = %v", took, b.closed)
		}
	})
}

func TestClientHasNoTimeoutOfItsOwn(t *testing.T) {
	t.Parallel()
	if c := Client(); c.Timeout != 0 {
		t.Errorf("timeout = %s would cut long streams", c.Timeout)
	}
}
