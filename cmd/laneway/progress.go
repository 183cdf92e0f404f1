package main

import (
	"fmt"
	"time"
)

// progress is one line on standard error that says what is going on and for how
// long, and leaves no trace. It is used by one goroutine.
type progress struct {
	a       *app
	on      bool
	what    string
	since   time.Time
	drawn   bool
	hidden  bool // text is being written where the line would be
	next    <-chan time.Time
	frame   int
	stopped bool
}

const progressInterval = 120 * time.Millisecond

// frames of the moving sign.
var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

func (p *progress) start(what string) {
	if !p.on {
		return
	}
	p.since = p.a.clock.Now()
	p.what = what
	p.draw()
}

// say changes what is going on; the line comes back if it was hidden.
func (p *progress) say(what string) { p.what, p.hidden = what, false }

// tick gives the time of the next drawing; nil (never) where nothing is drawn.
func (p *progress) tick() <-chan time.Time {
	if !p.on || p.stopped {
		return nil
	}
	if p.next == nil {
		p.next = p.a.clock.After(progressInterval)
	}
	return p.next
}

// draw replaces the line.
func (p *progress) draw() {
	p.next = nil
	if !p.on || p.hidden || p.stopped {
		return
	}
	p.frame++
	elapsed := p.a.clock.Now().Sub(p.since).Truncate(time.Second)
	line := fmt.Sprintf("%s %s %s", frames[p.frame%len(frames)], p.what, elapsed)
	fmt.Fprintf(p.a.stderr, "\r\x1b[K%s", p.a.paint(dim, line))
	p.drawn = true
}

// hide takes the line away while text is written.
func (p *progress) hide() {
	p.hidden = true
	p.erase()
}

func (p *progress) erase() {
	if p.drawn {
		fmt.Fprint(p.a.stderr, "\r\x1b[K")
		p.drawn = false
	}
}

// stop takes the line away for good.
func (p *progress) stop() {
	p.stopped = true
	p.erase()
}
