package main

import (
	"io"
	"strings"
	"testing"

	"laneway/test/fault"
)

func TestFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--seeds", "8"}, exitOK, "8 seeds, "},
		{[]string{"--seed", "5"}, exitOK, "seed 5, profile store"},
		{[]string{"--seeds", "40", "--mutation", "accept-without-absent", "--profile", "calm"}, exitFailure, "again: go run ./cmd/laneway fault --seed "},
		{[]string{"--mutations", "--mutation", "no-watchdog", "--seeds", "60"}, exitOK, "caught     no-watchdog"},
		{[]string{"--mutation", "nothing"}, exitFailure, ""},
		{[]string{"--profile", "nothing"}, exitFailure, ""},
	} {
		w := setup(t)
		w.app.runFault = func(o fault.Options, out io.Writer) bool { return fault.Execute(t, o, out) }
		if code := w.run(append([]string{"fault"}, c.args...)...); code != c.code || !strings.Contains(w.out.String(), c.want) {
			t.Errorf("%v: exit code %d, want %d with %q:\n%s\n%s", c.args, code, c.code, c.want, w.out, w.err)
		}
	}
}
