package storm

import (
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"
	"sync"

	"laneway/test/mockmodel"
)

// What a request to the model meets.
const (
	fine     = "answered"
	limited  = "429"
	busy     = "529"
	stalled  = "stall"
	cut      = "cut"
	empty    = "empty"
	overflow = "overflow"
)

// kinds is how often each is met, of 100.
var kinds = []struct {
	name  string
	share uint64
}{{limited, 6}, {busy, 6}, {stalled, 2}, {cut, 7}, {empty, 4}, {overflow, 3}}

// plan answers requests: the n-th request about one message always meets the same.
type plan struct {
	seed uint64

	mu     sync.Mutex
	asked  map[string]int
	met    map[string]int
	answer int
}

func newPlan(seed uint64) *plan {
	return &plan{seed: seed, asked: map[string]int{}, met: map[string]int{}}
}

func (p *plan) reply(r mockmodel.Request) (mockmodel.Reply, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	message := r.LastUser()
	p.asked[message]++
	kind := p.kind(message, p.asked[message])
	p.met[kind]++
	p.answer++
	// Each piece is said once in the world: twice on a screen is doubled text.
	var pieces []string
	for i := range 4 {
		pieces = append(pieces, fmt.Sprintf("<%d.%d> some words ", p.answer, i))
	}
	out := mockmodel.Reply{Text: pieces, PauseMs: 15}
	switch kind {
	case limited:
		return mockmodel.Reply{Status: 429, RetryAfter: "0"}, true
	case busy:
		return mockmodel.Reply{Status: 529, Body: `{"error":{"type":"overloaded_error","message":"Overloaded"}}`}, true
	case overflow:
		return mockmodel.Reply{Status: 400, Body: `{"error":{"code":"context_length_exceeded","type":"invalid_request_error","message":"This model's maximum context length is 8192 tokens."}}`}, true
	case empty:
		return mockmodel.Reply{}, true
	case stalled:
		out.Text, out.Stall = pieces[:2], true
	case cut:
		out.Text, out.Cut = pieces[:2], true
	}
	return out, true
}

func (p *plan) kind(message string, n int) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strings.Join([]string{strconv.FormatUint(p.seed, 10), message, strconv.Itoa(n)}, "\x00")))
	at := h.Sum64() % 100
	for _, k := range kinds {
		if at < k.share {
			return k.name
		}
		at -= k.share
	}
	return fine
}

func (p *plan) counts() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.met)
}
