package lineartest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"laneway/shared/table"
)

// history is what clients did and heard.
type history struct {
	calls   []porcupine.Operation
	unknown int
}

func (h *history) String() string {
	var b strings.Builder
	for _, c := range h.calls {
		fmt.Fprintf(&b, "%d-%d client %d: %+v gave %+v\n", c.Call, c.Return, c.ClientId, c.Input, c.Output)
	}
	return b.String()
}

// recorder is a history in the making.
type recorder struct {
	t     *testing.T
	store table.Store
	pk    string
	now   atomic.Int64 // counts begins and ends

	mu sync.Mutex
	h  history
}

// record lets clients work on a store at once.
func record(t *testing.T, store table.Store, seed uint64) *history {
	t.Helper()
	r := &recorder{t: t, store: store, pk: partition()}
	var wg sync.WaitGroup
	for n := range clients {
		wg.Go(func() { r.client(n, rand.New(rand.NewPCG(seed, uint64(n)))) })
	}
	wg.Wait()
	return &r.h
}

// client makes one call after the other. What it writes is on the condition of what it
// last saw: mostly it holds.
func (r *recorder) client(n int, rnd *rand.Rand) {
	var seen values
	for round := range rounds {
		// Numbers far enough apart that adding to one never makes another.
		fresh := int64(n+1)*1_000_000 + int64(round+1)*10_000
		a := rnd.IntN(items)
		in := input{at: [2]int{a, (a + 1 + rnd.IntN(items-1)) % items}, set: [2]int64{fresh, fresh + 5000}}
		in.want = [2]int64{seen[in.at[0]], seen[in.at[1]]}
		switch p := rnd.IntN(10); {
		case p < 4:
			in.what = get
		case p < 7:
			in.what = swap
		case p < 9:
			in.what = move
		default:
			in.what, in.amount = add, int64(1+rnd.IntN(9))
			if in.want[0] == 0 {
				in.what = get // a number that grew from nothing is not fresh
			}
		}
		out, done := r.call(n, in)
		switch {
		case !done || out.unknown:
		case out.failed:
			seen[in.at[out.op]] = out.value
		case in.what == get, in.what == add:
			seen[in.at[0]] = out.value
		default:
			seen = in.done(seen)
		}
	}
}

// call makes a call and notes it, unless it is certain that nothing was done.
func (r *recorder) call(n int, in input) (output, bool) {
	begun := r.now.Add(1)
	out, err := r.ask(in)
	ended := r.now.Add(1)
	if c, ok := table.Failed(err); ok {
		out = output{failed: true, op: c.Op, unknown: c.Ambiguous}
		if c.Found != nil {
			out.value = c.Found.Attrs.Int(attr)
		}
		err = nil
	}
	switch {
	case errors.Is(err, table.ErrUnknown):
		out = output{unknown: true}
	case errors.Is(err, table.ErrConflict), errors.Is(err, table.ErrThrottled):
		return output{}, false
	case err != nil:
		r.t.Errorf("%+v: %v", in, err)
		return output{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if out.unknown {
		ended = math.MaxInt64
		r.h.unknown++
	}
	r.h.calls = append(r.h.calls, porcupine.Operation{ClientId: n, Input: in, Call: begun, Output: out, Return: ended})
	return out, true
}

const attr = "v"

func (r *recorder) key(item int) table.Key {
	return table.Key{Table: table.Sessions, PK: r.pk, SK: strconv.Itoa(item)}
}

// ask makes the call.
func (r *recorder) ask(in input) (output, error) {
	ctx := r.t.Context()
	switch in.what {
	case get:
		it, err := r.store.Get(ctx, r.key(in.at[0]))
		if errors.Is(err, table.ErrNotFound) {
			return output{}, nil
		}
		return output{value: it.Attrs.Int(attr)}, err
	case add:
		res, err := r.store.Write(ctx, table.Op{
			Kind: table.Update, Key: r.key(in.at[0]), Add: []table.AddOp{{Path: table.P(attr), N: in.amount}}, ReturnNew: true,
		})
		if err != nil || res.New == nil {
			return output{}, err
		}
		return output{value: res.New.Attrs.Int(attr)}, nil
	case move:
		_, err := r.store.Write(ctx, r.put(in, 0), r.put(in, 1))
		return output{}, err
	case swap:
		_, err := r.store.Write(ctx, r.put(in, 0))
		return output{}, err
	}
	return output{}, nil
}

// put sets one of a call's items if it has the value that was wanted.
func (r *recorder) put(in input, n int) table.Op {
	op := table.Op{Kind: table.Put, Key: r.key(in.at[n]), Item: table.Attrs{attr: in.set[n]}, If: table.NotExists()}
	if in.want[n] != 0 {
		op.If = table.Equal(table.P(attr), in.want[n])
	}
	return op
}
