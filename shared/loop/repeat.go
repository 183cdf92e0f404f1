package loop

import (
	"strings"

	"laneway/shared/id"
)

// Numbers of the loop breaker (spec: loop 4.4): a call that is repeated with the
// same arguments and the same result is noted, blocked, and then ends the run.
const (
	repeatWindow = 30 // different calls that are remembered
	repeatWarn   = 10
	repeatBlock  = 20
)

// textLoopBlocked is what the model reads of a batch that was not run.
const textLoopBlocked = "This tool call was repeated too often with the same arguments and the same result, so it was not run. Use what you have, or try something else."

// repeats is the loop breaker's memory, which goes with the checkpoint: the last
// different calls of a run, the latest last, each with its last result and how often
// in a row it had that one. So loops over several calls are seen as well as loops
// over one, and the memory of a loop is small however long it is.
type repeats struct {
	Calls   []repeated `json:"calls,omitempty"`
	Blocked bool       `json:"blocked,omitempty"`
}

// repeated is a call by the digests of name and arguments, and of its result.
type repeated struct {
	Call   string `json:"c"`
	Result string `json:"r"`
	N      int    `json:"n"`
}

// verdict says what becomes of a batch of calls.
type verdict struct{ block, end bool }

// admit judges a batch before anything of it runs: the first time that one of its
// calls is a loop the batch is blocked, the second time the run ends.
func (r *repeats) admit(calls []*call) verdict {
	for _, c := range calls {
		if c.result != nil || r.count(c) < repeatBlock {
			continue
		}
		if r.Blocked {
			return verdict{end: true}
		}
		r.Blocked = true
		return verdict{block: true}
	}
	return verdict{}
}

// count is how often in a row a call came with one and the same result.
func (r *repeats) count(c *call) int {
	digest := callDigest(c)
	for i := range r.Calls {
		if r.Calls[i].Call == digest {
			return r.Calls[i].N
		}
	}
	return 0
}

// note remembers a call with its result. One that was blocked had none of its own,
// and stays the loop that it is.
func (r *repeats) note(c *call) {
	if c.blocked {
		return
	}
	var text strings.Builder
	for _, b := range c.result.Content {
		text.WriteString(b.Text)
	}
	now := repeated{Call: callDigest(c), Result: digest(text.String()), N: 1}
	kept := make([]repeated, 0, len(r.Calls)+1)
	for _, old := range r.Calls {
		if old.Call != now.Call {
			kept = append(kept, old)
		} else if old.Result == now.Result {
			now.N += old.N
		}
	}
	kept = append(kept, now)
	r.Calls = kept[max(0, len(kept)-repeatWindow):]
}

// warning is the note that is put behind the result of a call that repeats itself.
func (r *repeats) warning(c *call) string {
	if r.count(c) != repeatWarn {
		return ""
	}
	return "[laneway] This call has been made with the same arguments and the same result several times in a row."
}

func callDigest(c *call) string { return digest(c.block.Name, string(c.block.Arguments)) }

func digest(parts ...string) string { return id.Hash(parts...)[:16] }
