package main

// event is something that happens at a time, in seconds.
type event struct {
	at   float64
	seq  int64 // events of one time happen in the order in which they were planned
	what func()
}

// agenda is what is still to happen: a binary heap, by time. It is written out because
// a run has tens of millions of events.
type agenda struct {
	now    float64
	events []event
	seq    int64
}

func (a *agenda) less(i, j int) bool {
	x, y := &a.events[i], &a.events[j]
	if x.at != y.at {
		return x.at < y.at
	}
	return x.seq < y.seq
}

// after plans what happens in so many seconds.
func (a *agenda) after(seconds float64, what func()) {
	a.seq++
	a.events = append(a.events, event{a.now + seconds, a.seq, what})
	for i := len(a.events) - 1; i > 0; {
		parent := (i - 1) / 2
		if !a.less(i, parent) {
			break
		}
		a.events[i], a.events[parent] = a.events[parent], a.events[i]
		i = parent
	}
}

// run lets happen what is planned up to a time.
func (a *agenda) run(until float64) {
	for len(a.events) > 0 && a.events[0].at <= until {
		next := a.events[0]
		last := len(a.events) - 1
		a.events[0] = a.events[last]
		a.events[last] = event{}
		a.events = a.events[:last]
		for i := 0; ; {
			least := i
			for _, child := range []int{2*i + 1, 2*i + 2} {
				if child < last && a.less(child, least) {
					least = child
				}
			}
			if least == i {
				break
			}
			a.events[i], a.events[least] = a.events[least], a.events[i]
			i = least
		}
		a.now = next.at
		next.what()
	}
	a.now = until
}
