package main

import (
	"strings"
	"testing"
	"time"
)

func TestCron_WhenAJobRuns(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name        string
		flags       scheduleFlags
		kind, text  string // of the schedule, as lists show it
		note, fails string
	}{
		{"every hour", scheduleFlags{Every: "1h"}, "every", "every 1h", "", ""},
		{"every two days", scheduleFlags{Every: "2d"}, "every", "every 2d", "", ""},
		{"an expression in a zone", scheduleFlags{Cron: "0 9 * * 1-5", TZ: "Europe/Berlin"}, "cron", "0 9 * * 1-5 Europe/Berlin", "", ""},
		{"a time without a zone is UTC, and that is said", scheduleFlags{At: "2026-12-24T18:00"}, "at", "at 2026-12-24T18:00", "taken as UTC", ""},
		{"a time with its zone", scheduleFlags{At: "2026-12-24T18:00:00+01:00"}, "at", "at 2026-12-24T18:00:00+01:00", "", ""},
		{"a time in a zone", scheduleFlags{At: "2026-12-24T18:00", TZ: "Europe/Berlin"}, "at", "at 2026-12-24T18:00", "", ""},
		{"in a while", scheduleFlags{At: "20m"}, "at", "at 2026-03-01T12:20:00Z", "", ""},
		{"in a while, with a sign", scheduleFlags{At: "+2d"}, "at", "at 2026-03-03T12:00:00Z", "", ""},
		{"no time", scheduleFlags{At: "yesterday"}, "", "", "", "--at"},
		{"no span", scheduleFlags{Every: "often"}, "", "", "", "--every"},
		{"a zone of nothing", scheduleFlags{Every: "1h", TZ: "UTC"}, "", "", "", "--tz"},
		{"exactly nothing", scheduleFlags{Every: "1h", Exact: true}, "", "", "", "--exact"},
	} {
		s, note, err := c.flags.schedule(now)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || s.Kind != c.kind || scheduleText(*s) != c.text || (note == "") != (c.note == "") || !strings.Contains(note, c.note) {
			t.Errorf("%s: %+v, note %q, %v", c.name, s, note, err)
		}
	}
	if s, _, err := (scheduleFlags{}).schedule(now); s != nil || err != nil {
		t.Errorf("nothing: %+v, %v", s, err)
	}
	if s, _, err := (scheduleFlags{Cron: "0 * * * *", Exact: true}).schedule(now); err != nil || s.StaggerMs == nil || *s.StaggerMs != 0 {
		t.Errorf("exact: %+v, %v", s, err)
	}
}

func TestCron_Spans(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		time.Hour: "1h", 90 * time.Minute: "1h30m", 48 * time.Hour: "2d", 10 * time.Second: "10s", 10 * time.Minute: "10m", 100 * time.Second: "1m40s", 30 * time.Hour: "30h",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestCron_MistakesAreTold(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"say when":       {"cron", "add", "-m", "x"},
		"say what":       {"cron", "add", "--every", "1h"},
		"--every":        {"cron", "add", "--every", "1h", "--cron", "* * * * *", "-m", "x"},
		"--message":      {"cron", "add", "--every", "1h", "-m", "x", "--system-event", "y"},
		"expected":       {"cron", "show"},
		"--at: want a t": {"cron", "edit", "j", "--at", "never"},
	} {
		w := setup(t)
		if code := w.app.run(t.Context(), args); code != exitFailure || !strings.Contains(w.err.String(), want) {
			t.Errorf("%v: code %d, %s", args, code, w.err.String())
		}
	}
}
