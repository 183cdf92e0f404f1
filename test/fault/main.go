package fault

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// Options of the command.
type Options struct {
	Seeds uint64 // how many, from First on
	First uint64
	// One runs a single seed and prints its timeline.
	One       bool
	Profile   string // empty: each seed's own
	Mutation  string // one of Mutations; empty: the product as it is
	Mutations bool   // prints the table of all of them, at most Seeds of each profile
	Progress  io.Writer
}

// Check says what is wrong with options.
func (o *Options) Check() error {
	if o.Mutation != "" && MutationOf(o.Mutation) == nil {
		return fmt.Errorf("no mutation %q", o.Mutation)
	}
	if o.Profile != "" && profileOf(Config{Profile: o.Profile}).Name != o.Profile {
		return fmt.Errorf("no profile %q; there are %s", o.Profile, strings.Join(ProfileNames(), ", "))
	}
	return nil
}

// Main runs the kit in a process that is no test, prints to out, and ends the process:
// with 0 if nothing was violated. Bubbles of virtual time exist only under a test, so
// it is run as one; testing.Main is kept for whoever does that.
func Main(o Options, out io.Writer) {
	os.Args = os.Args[:1] // the flags of package testing are not the command's
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "fault", F: func(t *testing.T) {
		t.Helper()
		code := 0
		if !Execute(t, o, out) {
			code = 1
		}
		os.Exit(code)
	}}}, nil, nil)
}

// Execute does what the options ask for; false: a rule was violated, or a mutation was
// not noticed.
func Execute(t *testing.T, o Options, out io.Writer) bool {
	t.Helper()
	m := MutationOf(o.Mutation)
	switch {
	case o.Mutations:
		return tryAll(t, o, out)
	case o.One:
		r := Run(t, Config{Seed: o.First, Profile: o.Profile, Mutation: m, Record: true})
		r.Print(out)
		return len(r.Violations) == 0
	}
	b := Batch{First: o.First, Count: o.Seeds, Profile: o.Profile, Mutation: m}
	if o.Progress != nil {
		began := time.Now()
		b.Tell = func(done uint64) {
			fmt.Fprintf(o.Progress, "%d of %d seeds, %s\n", done, o.Seeds, time.Since(began).Truncate(time.Second))
		}
	}
	sum := Many(t, b)
	sum.Print(out)
	return len(sum.Failed) == 0
}

// tryAll tries every mutation and prints what noticed it.
func tryAll(t *testing.T, o Options, out io.Writer) bool {
	t.Helper()
	all := true
	for _, m := range Mutations() {
		if o.Mutation != "" && o.Mutation != m.Name {
			continue
		}
		c := Catch(t, &m, o.Seeds)
		fmt.Fprintln(out, c)
		all = all && c.Report != nil
	}
	return all
}
