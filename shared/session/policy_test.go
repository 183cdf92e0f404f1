package session_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the tests, wherever they run

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
		{"both: the same moment is daily", "daily@10,idle:60", at(10, 9, 0), at(10, 9, 0), now, "daily"},
		{"daily: the hour below 0 is clamped", "daily@-3", at(9, 23, 59), at(9, 23, 59), at(10, 0, 30), "daily"},
		{"an object without a mode means daily", "atHour:11", at(10, 10, 0), at(10, 10, 0), now, "daily"},
		{"without a mode, minutes come on top of daily", "idleMinutes:60", at(10, 5, 0), at(10, 10, 0), now, "idle"},
		{"never touched, daily", "daily", at(10, 5, 0), time.Time{}, now, "daily"},
		{"never touched, idle", "idle:60", at(10, 5, 0), time.Time{}, now, "idle"},
		{"never touched, never", "none", at(10, 5, 0), time.Time{}, now, ""},
	} {
		r, err := session.ParseReset(row.policy)
		if err != nil {
			t.Fatal(err)
		}
		if got, stale := r.Base.Stale(row.began, row.last, row.now); got != row.want || stale != (row.want != "") {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	for bad, named := range map[string]string{
		"weekly": `"weekly"`, "idle": `"idle"`, "idle:0": `"idle:0"`, "idle:x": `"idle:x"`, "daily@x": `"daily@x"`, "daily,": `""`,
		"idle:99999999999": `"idle:99999999999"`, "none,daily": "none stands alone", "none,idleMinutes:5": "none stands alone",
		"daily; type/dm: idle:5":       `"type/dm" is none; want type/direct: …, type/group: …, type/thread: …, channel/<name>: …`,
		"daily; channel/slack: weekly": `channel/slack: "weekly" is none; want daily, daily@HOUR`,
		"daily; type/group:":           "type/group says nothing",
	} {
		if _, err := session.ParseReset(bad); !errors.Is(err, session.ErrReset) || !strings.Contains(err.Error(), named) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestRuntime33_PolicyByTypeAndChannel: a type stands in the place of the base and has
// its mode where it names none; a channel stands in the place of both.
func TestRuntime33_PolicyByTypeAndChannel(t *testing.T) {
	t.Parallel()
	const (
		direct = "agent:main:slack:direct:p"
		group  = "agent:main:slack:group:g"
		thread = "agent:main:slack:channel:c:thread:t"
		inner  = "agent:main:main"
	)
	for _, row := range []struct{ name, policy, key, want string }{
		{"no section: the base", "daily@5,idle:60", group, "daily@5,idle:60"},
		{"no section, no base", "", group, "none"},
		{"a type in the place of the base", "daily; type/group: idle:30", group, "idle:30"},
		{"another type has the base", "daily; type/group: idle:30", direct, "daily@4"},
		{"direct", "daily; type/direct: idle:30", direct, "idle:30"},
		{"direct is also what has no channel", "daily; type/direct: idle:30", inner, "idle:30"},
		{"thread", "daily; type/thread: none", thread, "none"},
		{"a thread in a group is no group", "daily; type/group: none", thread, "daily@4"},
		{"without a mode: that of the base, daily", "daily; type/group: atHour:6", group, "daily@6"},
		{"without a mode: that of the base, idle", "idle:60; type/group: idleMinutes:5", group, "idle:5"},
		{"the hour says nothing in mode idle", "idle:60; type/group: atHour:6", group, "idle:60"},
		{"without a mode: that of the base, both", "daily@5,idle:60; type/group: idleMinutes:5", group, "daily@5,idle:5"},
		{"without a mode, base none", "none; type/group: atHour:6", group, "none"},
		{"without a mode and a base: daily", "type/group: atHour:6", group, "daily@6"},
		{"without a base others stay as they are", "type/group: atHour:6", direct, "none"},
		{"a channel in the place of the base", "daily; channel/slack: idle:30", direct, "idle:30"},
		{"a channel in the place of the type", "daily; type/group: none; channel/slack: idle:30", group, "idle:30"},
		{"whichever comes first", "daily; channel/slack: idle:30; type/group: none", group, "idle:30"},
		{"a channel inherits nothing", "idle:60; type/group: none; channel/slack: atHour:6", group, "daily@6"},
		{"another channel", "daily; channel/discord: idle:30", group, "daily@4"},
		{"channels are compared lower-cased", "channel/Slack: idle:30", group, "idle:30"},
		{"the channel of what names none", "daily; channel/webchat: none", inner, "none"},
	} {
		r, err := session.ParseReset(row.policy)
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if got := r.For(session.PlaceOf(row.key)).String(); got != row.want {
			t.Errorf("%s: %q gives %s, want %s", row.name, row.policy, got, row.want)
		}
	}
}

// TestRuntime33_DailyIsOnceADay: also where clocks leave the hour out, or show it twice:
// a session that is in use day and night starts over once a day, about a day after the
// last time.
func TestRuntime33_DailyIsOnceADay(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Europe/Berlin", "America/Santiago", "Asia/Beirut", "Australia/Lord_Howe"} {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, hour := range []int{0, 1, 2, 3, 4, 23} {
			p := session.ResetPolicy{Daily: true, Hour: hour}
			last, end := time.Date(2025, 1, 1, 12, 0, 0, 0, loc), time.Date(2026, 1, 1, 12, 0, 0, 0, loc)
			times := 0
			for now := last; now.Before(end); now = now.Add(15 * time.Minute) {
				if _, stale := p.Stale(last, now, now); !stale {
					continue
				}
				if took := now.Sub(last); took < 22*time.Hour && times > 0 {
					t.Errorf("%s, %d o'clock: at %s, %s after the last time", zone, hour, now, took)
				}
				last = now
				times++
			}
			if times != 365 {
				t.Errorf("%s, %d o'clock: %d times in a year", zone, hour, times)
			}
		}
	}
}
