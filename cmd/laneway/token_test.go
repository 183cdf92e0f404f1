package main

import (
	"strings"
	"testing"
	"time"

	"laneway/shared/protocol"
)

func TestTokensAreMadeListedAndTakenAway(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.app.openTokens = openTokens
	w.runs(0, "token", "list")
	contains(t, "stderr", w.err.String(), "no tokens")
	w.runs(0, "token", "add", "phone", "--scopes", "operator.read,operator.write", "--expires", "90d", "--tenant", "family")
	secret := strings.TrimSpace(w.out.String())
	if len(secret) < 32 || strings.ContainsAny(secret, " \n") || strings.Contains(w.err.String(), secret) {
		t.Errorf("stdout %q, stderr %q", w.out, w.err)
	}
	w.out.b.Reset()
	w.runs(0, "token", "list")
	contains(t, "stdout", w.out.String(), "phone", "family", protocol.ScopeRead+","+protocol.ScopeWrite, "until 2")
	if strings.Contains(w.out.String(), secret) {
		t.Error("the secret is listed")
	}
	id := strings.Fields(strings.Split(w.out.String(), "\n")[1])[0]
	w.out.b.Reset()
	w.runs(0, "token", "list", "--json")
	contains(t, "stdout", w.out.String(), `"id":"`+id+`"`)
	w.runs(0, "token", "rm", id)
	contains(t, "stderr", w.err.String(), "10 seconds", "a minute")
	w.runs(1, "token", "rm", id)
	contains(t, "stderr", w.err.String(), "there is no token "+id)
}

func TestTokenAddRefuses(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--scopes", "operator.everything"}, {"--expires", "soon"}, {"--expires", "-1h"}, {"--tenant", "No Tenant"}} {
		w := setup(t)
		w.app.openTokens = openTokens
		w.runs(1, append([]string{"token", "add", "x"}, args...)...)
		if w.out.String() != "" {
			t.Errorf("%q: a token was printed", args)
		}
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]time.Duration{"90d": 90 * 24 * time.Hour, "1h30m": 90 * time.Minute, "d": 0, "": 0, "0d": 0, "5": 0} {
		if got, err := duration(s); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
}
