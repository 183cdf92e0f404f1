package fault

import (
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"time"
)

// timeline is what happened, one line a step. The digest is made of it whether or not
// the lines are kept.
type timeline struct {
	on     bool
	lines  []string
	digest uint64
}

func (t *timeline) add(step int, at time.Duration, who, what string) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %s %s", t.digest, at, who, what)
	t.digest = h.Sum64()
	if t.on {
		t.lines = append(t.lines, fmt.Sprintf("%6d %10.3fs  %-10s %s", step, at.Seconds(), who, what))
	}
}

func (t *timeline) addf(step int, at time.Duration, who, format string, args ...any) {
	if t.on {
		t.add(step, at, who, fmt.Sprintf(format, args...))
		return
	}
	// Formatting costs more than everything else that a line is for.
	t.add(step, at, who, format)
}

// Command is the line that runs a seed again.
func (r *Report) Command() string {
	c := fmt.Sprintf("go run ./cmd/laneway fault --seed %d", r.Seed)
	if r.Mutation != nil {
		c += " --mutation " + r.Mutation.Name
	}
	if r.Profile != profileOf(Config{Seed: r.Seed}).Name {
		c += " --profile " + r.Profile
	}
	return c
}

// maxShown bounds the lines of a timeline that are printed, from its end.
const maxShown = 3000

// Print writes what went wrong, what led to it, and how to see it again.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "seed %d, profile %s, %d steps in %s of its time\n", r.Seed, r.Profile, r.Steps, r.Virtual.Truncate(time.Millisecond))
	if from := len(r.Timeline) - maxShown; from > 0 {
		fmt.Fprintf(w, "  ... %d lines before\n", from)
		r.Timeline = r.Timeline[from:]
	}
	fmt.Fprintln(w, strings.Join(r.Timeline, "\n"))
	for _, v := range r.Violations {
		fmt.Fprintf(w, "violated %s\n", v)
	}
	fmt.Fprintf(w, "again: %s\n", r.Command())
}
