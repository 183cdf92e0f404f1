package anthropic

import (
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/modeltest"
)

// streams are what the API sends, to be damaged.
func streams() (out []string) {
	for _, s := range [][]string{
		all(begin, text(0, "hi"), stop("end_turn"), end),
		all(begin, toolUse(0, "a", "ls", `{}`), toolUse(1, "b", "ls", `{`), stop("max_tokens"), end),
		all(begin, start(0, `{"type":"thinking","thinking":"","signature":"x"}`), closed(0), `{"type":"error","error":{}}`),
	} {
		out = append(out, "data: "+strings.Join(s, "\n\ndata: ")+"\n\n")
	}
	return out
}

// decode checks that the promises of package model hold for a body.
func decode(t *testing.T, body string) {
	t.Helper()
	var seq iter.Seq2[model.Part, error] = func(yield func(model.Part, error) bool) {
		d := &decoder{ctx: t.Context(), yield: yield}
		d.run(strings.NewReader(body))
	}
	modeltest.Collect(t, seq)
	if t.Failed() {
		t.Logf("body: %q", body)
	}
}

func TestDamagedStreamsKeepThePromises(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		decode(t, modeltest.Damage(rnd, streams()))
		if t.Failed() {
			return
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range streams() {
		f.Add(s)
	}
	f.Fuzz(decode)
}
