package openai

import (
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/modeltest"
)

// streams are what real servers send, to be damaged.
var streams = []string{
	"data: " + text("hi") + "\n\ndata: [DONE]\n\n",
	"data: " + toolDelta(`{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}},{"function":{"name":"x","arguments":{}}}`) + "\n\ndata: " + finish("length"),
	"data: " + toolDelta(`{"id":"a","function":{"name":"ls"}}`) + "\n\ndata: " + toolDelta(`{"id":"b","function":{"name":"ls","arguments":"{}"}}`) + "\n\ndata: [DONE]\n\n",
	"data: {\"error\":{\"code\":429}}\n\n",
	": c\r\n\r\ndata: null\ndata: 1\n\n",
}

// decode checks that the promises of package model hold for a body.
func decode(t *testing.T, body string) {
	t.Helper()
	p, err := New(Config{BaseURL: "http://127.0.0.1:1/v1"})
	if err != nil {
		t.Fatal(err)
	}
	var seq iter.Seq2[model.Part, error] = func(yield func(model.Part, error) bool) {
		d := &decoder{provider: p, ctx: t.Context(), yield: yield}
		d.events(strings.NewReader(body))
		if !d.stopped {
			d.end()
		}
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
		decode(t, modeltest.Damage(rnd, streams))
		if t.Failed() {
			return
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range streams {
		f.Add(s)
	}
	f.Fuzz(decode)
}
