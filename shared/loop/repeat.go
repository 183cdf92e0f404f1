package loop

import "laneway/shared/id"

// Numbers of the loop breaker (spec: loop 4.4): a call that is repeated with the
// same arguments and the same result is noted, blocked, and then ends the run.
const (
	repeatWindow = 30
	repeatWarn   = 10
	repeatBlock  = 20
)

// textLoopBlocked is what the model reads of a batch that was not run.
const textLoopBlocked = "This tool call was repeated too often with the same arguments and the same result, so it was not run. Use what you have, or try something else."

// repeats is the loop breaker's memory: digests of the last calls of a run, newest
// last. It goes with the checkpoint.
type repeats struct {
	Last    []string `json:"last,omitempty"`  // digest of name, arguments and result
	Calls   []string `json:"calls,omitempty"` // digest of name and arguments
	Blocked bool     `json:"blocked,omitempty"`
}

// verdict says what becomes of a batch of calls.
type verdict struct{ block, end bool }

// admit judges a batch before anything of it runs: the first time that one of its
// calls is a loop the batch is blocked, the second time the run ends.
func (r *repeats) admit(calls []*call) verdict {
	for _, c := range calls {
		if c.result != nil || r.count(callDigest(c)) < repeatBlock {
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

// count is how often in a row of the window a call came with one and the same result.
func (r *repeats) count(callDigest string) int {
	n, result := 0, ""
	for i := len(r.Calls) - 1; i >= 0; i-- {
		if r.Calls[i] != callDigest {
			continue
		}
		if result == "" {
			result = r.Last[i]
		}
		if r.Last[i] != result {
			break
		}
		n++
	}
	return n
}

// note remembers a call with its result.
func (r *repeats) note(c *call) {
	text := ""
	for _, b := range c.result.Content {
		text += b.Text
	}
	r.Calls = append(r.Calls, callDigest(c))
	r.Last = append(r.Last, id.Hash(callDigest(c), text)[:16])
	if n := len(r.Calls) - repeatWindow; n > 0 {
		r.Calls, r.Last = r.Calls[n:], r.Last[n:]
	}
}

// warning is the note that is put behind the result of a call that repeats itself.
func (r *repeats) warning(c *call) string {
	if r.count(callDigest(c)) != repeatWarn {
		return ""
	}
	return "[laneway] This call has been made with the same arguments and the same result several times in a row."
}

func callDigest(c *call) string { return id.Hash(c.block.Name, string(c.block.Arguments))[:16] }
