package session_test

import (
	"testing"
	"time"

	"laneway/shared/session"
)

// TestRuntime33_ResetPolicy: each row, at and around its boundary.
func TestRuntime33_ResetPolicy(t *testing.T) {
	t.Parallel()
	at := func(day, hour, minute int) time.Time { return time.Date(2026, 3, day, hour, minute, 0, 0, time.UTC) }
	now := at(10, 12, 0)
	for _, row := range []struct {
		name, policy string
		began, last  time.Time
		now          time.Time
		want         string
	}{
		{"default: none", "", at(1, 0, 0), at(1, 0, 0), now, ""},
		{"none, said", "none", at(1, 0, 0), at(1, 0, 0), now, ""},
		{"daily: began before today's boundary", "daily", at(10, 3, 59), at(10, 11, 0), now, "daily"},
		{"daily: began at it", "daily", at(10, 4, 0), at(10, 4, 0), now, ""},
		{"daily: before the hour the boundary is yesterday's", "daily", at(9, 5, 0), at(9, 5, 0), at(10, 3, 0), ""},
		{"daily: the day before that", "daily", at(9, 3, 0), at(9, 5, 0), at(10, 3, 0), "daily"},
		{"daily at another hour", "daily@11", at(10, 10, 0), at(10, 10, 0), now, "daily"},
		{"daily: the hour is clamped", "daily@99", at(9, 22, 0), at(9, 22, 0), at(9, 23, 30), "daily"},
		{"idle: strictly later", "idle:60", at(1, 0, 0), at(10, 11, 0), now, ""},
		{"idle: a minute more", "idle:60", at(1, 0, 0), at(10, 10, 59), now, "idle"},
		{"both: idle came first", "daily,idle:60", at(9, 12, 0), at(9, 20, 0), now, "idle"},
		{"both: daily came first", "daily,idle:600", at(9, 12, 0), at(10, 1, 0), now, "daily"},
		{"both: neither", "daily,idle:600", at(10, 5, 0), at(10, 5, 0), now, ""},
	} {
		p, err := session.ParseReset(row.policy)
		if err != nil {
			t.Fatal(err)
		}
		if got, stale := p.Stale(row.began, row.last, row.now); got != row.want || stale != (row.want != "") {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	for _, bad := range []string{"weekly", "idle", "idle:0", "idle:x", "daily@x", "daily,"} {
		if _, err := session.ParseReset(bad); err == nil {
			t.Errorf("%q is a policy", bad)
		}
	}
}
