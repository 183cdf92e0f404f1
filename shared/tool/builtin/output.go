package builtin

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"laneway/shared/chars"
	"laneway/shared/clock"
	"laneway/shared/tool"
)

const (
	outputHead = 80_000  // bytes kept of the start of an output
	outputTail = 120_000 // and of its end: 200,000 together
	liveChars  = 8000    // of the end of an output in a progress report
	liveEvery  = 250 * time.Millisecond
	liveMark   = "...(live output truncated)...\n"
)

// output collects what a command writes, in bounded memory: the start and the end
// of a long output, and how much was between. It reports progress at most every
// 250 ms.
type output struct {
	clock  clock.Clock
	update func(tool.Result) // may be nil

	mu      sync.Mutex
	head    []byte
	tail    []byte
	lost    int // bytes between head and tail
	started time.Time
	shown   time.Time
}

func newOutput(update func(tool.Result), c clock.Clock) *output {
	return &output{update: update, clock: c, started: c.Now()}
}

// begin sets the time from which durations count.
func (o *output) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.started = o.clock.Now()
}

func (o *output) elapsed() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.clock.Now().Sub(o.started)
}

// Write takes a piece of the output. It never fails: a command must not notice
// that nobody keeps what it says.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	o.add(p)
	now := o.clock.Now()
	report := o.update != nil && (o.shown.IsZero() || now.Sub(o.shown) >= liveEvery)
	var live string
	if report {
		o.shown = now
		live = o.live()
	}
	o.mu.Unlock()
	if report { // not under the lock: the receiver may take its time
		o.update(tool.TextResult(live))
	}
	return len(p), nil
}

func (o *output) add(p []byte) {
	if room := outputHead - len(o.head); room > 0 {
		n := min(room, len(p))
		o.head, p = append(o.head, p[:n]...), p[n:]
	}
	o.tail = append(o.tail, p...)
	if len(o.tail) > 2*outputTail { // moved rarely, so that long outputs cost little
		drop := len(o.tail) - outputTail
		o.lost += drop
		o.tail = append(o.tail[:0], o.tail[drop:]...)
	}
}

// live is the end of the output so far.
func (o *output) live() string {
	end := o.tail
	if len(end) < 4*liveChars {
		end = append(o.head[max(0, len(o.head)-4*liveChars):len(o.head):len(o.head)], end...)
	}
	text := strings.ToValidUTF8(string(end), "\uFFFD")
	if o.lost == 0 && chars.Fits(text, liveChars) && len(o.head)+len(o.tail) == len(end) {
		return text
	}
	return liveMark + chars.Tail(text, liveChars-chars.Count(liveMark))
}

// String is the whole output, or its two ends.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail, lost := o.tail, o.lost
	if over := len(tail) - outputTail; over > 0 {
		tail, lost = tail[over:], lost+over
	}
	if lost == 0 {
		return strings.ToValidUTF8(string(o.head)+string(tail), "\uFFFD")
	}
	return strings.ToValidUTF8(fmt.Sprintf("%s\n[... %d bytes of output omitted ...]\n%s", o.head, lost, tail), "\uFFFD")
}
