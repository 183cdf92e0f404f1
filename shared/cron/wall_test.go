package cron

import (
	"math/rand/v2"
	"testing"
	"time"

	"laneway/shared/protocol"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// The days on which clocks change: a slot that does not exist, and one that exists
// twice.
func TestDaylightSaving_SlotsOfADayOnWhichClocksChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, zone, expr, from string
		want                   []string
	}{
		{
			"a time that does not exist is the moment of the jump, so that the job runs every day",
			"Europe/Berlin", "30 2 * * *", "2026-03-28T00:00:00+01:00",
			[]string{"2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"},
		},
		{
			"two times that do not exist are one slot",
			"Europe/Berlin", "*/30 2 * * *", "2026-03-29T00:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00", "2026-03-30T02:30:00+02:00"},
		},
		{
			"nor is one that meets a slot which exists",
			"Europe/Berlin", "30 2,3 * * *", "2026-03-29T00:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00", "2026-03-30T02:30:00+02:00"},
		},
		{
			"a time that exists twice runs the first time",
			"Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00+02:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		},
		{
			"likewise for several in that hour",
			"Europe/Berlin", "*/30 2 * * *", "2026-10-24T12:00:00+02:00",
			[]string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-26T02:00:00+01:00"},
		},
		{
			"asked in the hour's second pass, the first has been",
			"Europe/Berlin", "30 2 * * *", "2026-10-25T02:10:00+01:00",
			[]string{"2026-10-26T02:30:00+01:00"},
		},
		{
			"every hour goes on by real time in spring",
			"Europe/Berlin", "*/30 * * * *", "2026-03-29T01:00:00+01:00",
			[]string{"2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"},
		},
		{
			"what is between in every hour is not made up for",
			"Europe/Berlin", "15 * * * *", "2026-03-29T01:15:00+01:00",
			[]string{"2026-03-29T03:15:00+02:00", "2026-03-29T04:15:00+02:00"},
		},
		{
			"every hour goes on by real time in autumn",
			"Europe/Berlin", "0 * * * *", "2026-10-25T01:30:00+02:00",
			[]string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"},
		},
		{
			"a midnight that does not exist",
			"Africa/Cairo", "0 0 * * *", "2026-04-23T12:00:00+02:00",
			[]string{"2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"},
		},
		{
			"half an hour that does not exist",
			"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00:00+10:30",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"},
		},
		{
			"half an hour that exists twice",
			"Australia/Lord_Howe", "45 1 * * *", "2026-04-04T12:00:00+11:00",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"},
		},
		{
			"a whole day that does not exist",
			"Pacific/Apia", "0 9 30 * *", "2011-12-01T12:00:00-10:00",
			[]string{"2011-12-31T00:00:00+14:00", "2012-01-30T09:00:00+14:00"},
		},
		{
			"working days over a change",
			"Europe/Berlin", "0 9 * * 1-5", "2026-03-27T10:00:00+01:00",
			[]string{"2026-03-30T09:00:00+02:00", "2026-03-31T09:00:00+02:00"},
		},
		{
			"day of month and day of week are alternatives",
			"Europe/Berlin", "0 0 13 * 5", "2026-03-01T00:00:00+01:00",
			[]string{"2026-03-06T00:00:00+01:00", "2026-03-13T00:00:00+01:00", "2026-03-20T00:00:00+01:00"},
		},
		{
			"29 February, over a year that has none",
			"UTC", "0 0 29 2 *", "2096-03-01T00:00:00Z",
			[]string{"2104-02-29T00:00:00Z"},
		},
		{
			"seconds first",
			"Europe/Berlin", "*/30 0 9 * * *", "2026-03-27T10:00:00+01:00",
			[]string{"2026-03-28T09:00:00+01:00", "2026-03-28T09:00:30+01:00", "2026-03-29T09:00:00+02:00"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			z := zone(t, c.zone)
			w, err := parseWall(c.expr, z)
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339, c.from)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				var ok bool
				if at, ok = w.next(at); !ok || at.In(z).Format(time.RFC3339) != want {
					t.Fatalf("next is %s, %v; want %s", at.In(z).Format(time.RFC3339), ok, want)
				}
			}
		})
	}
}

// Whatever the zone and the day: slots grow, each is found from anywhere before it,
// clocks show what the expression says unless it is the moment of a jump, and a daily
// job runs once a day.
func TestDaylightSaving_AtRandom(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	zones := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/Havana", "Antarctica/Troll", "Asia/Kolkata", "UTC"}
	for range 300 {
		z := zone(t, zones[rng.IntN(len(zones))])
		hour, minute := rng.IntN(24), rng.IntN(60)
		expr := cronDaily(hour, minute)
		w, err := parseWall(expr, z)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(2026, 1, 1, 0, 0, rng.IntN(365*86400), 0, time.UTC)
		for range 5 {
			slot, ok := w.next(at)
			if !ok || !slot.After(at) {
				t.Fatalf("%s in %s after %s: %s, %v", expr, z, at, slot, ok)
			}
			between := at.Add(time.Duration(rng.Int64N(int64(slot.Sub(at)))))
			if again, _ := w.next(between); !again.Equal(slot) {
				t.Fatalf("%s in %s: after %s it is %s, after %s it is %s", expr, z, at, slot, between, again)
			}
			local := slot.In(z)
			start, _ := local.ZoneBounds()
			if (local.Hour() != hour || local.Minute() != minute) && !start.Equal(slot) {
				t.Fatalf("%s in %s at %s", expr, z, local)
			}
			if next, _ := w.next(slot); next.Sub(slot) < 20*time.Hour || next.Sub(slot) > 28*time.Hour {
				t.Fatalf("%s in %s: %s, then %s", expr, z, local, next.In(z))
			}
			at = slot
		}
	}
}

func cronDaily(hour, minute int) string {
	return time.Date(2026, 1, 1, hour, minute, 0, 0, time.UTC).Format("4 15 * * *")
}

func TestExpressionsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{
		"", "nonsense", "61 * * * *", "* * * *", "* * * * * * *", "@daily", "@every 1h", "TZ=UTC * * * *", "CRON_TZ=UTC 0 9 * * *", "H * * * *", "0 0 * * 9", "-1 * * * *",
	} {
		if _, err := parseWall(expr, time.UTC); err == nil {
			t.Errorf("%q was read", expr)
		}
	}
	w, err := parseWall("0 0 30 2 *", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := w.next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)); ok {
		t.Errorf("30 February is on %s", at)
	}
}

func TestEvery_IsAnchorPlusMultiples(t *testing.T) {
	t.Parallel()
	anchor := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ms := func(n int64) *int64 { return &n }
	s, err := NewSchedule(protocol.CronSchedule{Kind: "every", EveryMs: ms(90_000), AnchorMs: ms(anchor.UnixMilli())}, "j", time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ after, want time.Duration }{
		{-time.Hour, 0},
		{-time.Millisecond, 0},
		{0, 90 * time.Second},
		{89 * time.Second, 90 * time.Second},
		{90 * time.Second, 180 * time.Second},
		{1000 * time.Hour, 1000*time.Hour + 90*time.Second},
	} {
		if got, ok := s.Next(anchor.Add(c.after)); !ok || got.Sub(anchor) != c.want {
			t.Errorf("after %v: %v, want %v", c.after, got.Sub(anchor), c.want)
		}
	}
}

func TestAt_WithoutAZoneIsUTC(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, tz, want string
		assumed        bool
	}{
		{"2026-12-24T18:00", "", "2026-12-24T18:00:00Z", true},
		{"2026-12-24 18:00:30", "", "2026-12-24T18:00:30Z", true},
		{"2026-12-24", "", "2026-12-24T00:00:00Z", true},
		{"2026-12-24T18:00:00Z", "", "2026-12-24T18:00:00Z", false},
		{"2026-12-24T18:00+01:00", "", "2026-12-24T17:00:00Z", false},
		{"2026-12-24T18:00", "Europe/Berlin", "2026-12-24T17:00:00Z", false},
		{"2026-12-24T18:00:00Z", "Europe/Berlin", "2026-12-24T18:00:00Z", false},
		{"2026-03-29T02:30", "Europe/Berlin", "2026-03-29T01:00:00Z", false}, // does not exist
		{"2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30:00Z", false}, // exists twice
	} {
		at, assumed, err := ParseAt(c.text, c.tz)
		if err != nil || at.Format(time.RFC3339) != c.want || assumed != c.assumed {
			t.Errorf("%s in %q: %s, assumed %v, %v; want %s", c.text, c.tz, at.Format(time.RFC3339), assumed, err, c.want)
		}
	}
	for _, text := range []string{"", "tomorrow", "2026-13-01T00:00", "2026-02-30", "18:00", "1798135200000"} {
		if at, _, err := ParseAt(text, ""); err == nil {
			t.Errorf("%q is %s", text, at)
		}
	}
}

func TestStagger_SpreadsTheTopOfEveryHour(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)
	zero, minute := int64(0), int64(60_000)
	offset := func(expr, jobID string, stagger *int64) time.Duration {
		t.Helper()
		s, err := NewSchedule(protocol.CronSchedule{Kind: "cron", Expr: expr, StaggerMs: stagger}, jobID, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		slot, ok := s.Next(from)
		again, _ := s.Next(slot.Add(-time.Millisecond))
		if !ok || !again.Equal(slot) {
			t.Fatalf("%s, then %s", slot, again)
		}
		return slot.Sub(slot.Truncate(time.Hour))
	}
	seen := map[time.Duration]bool{}
	for _, jobID := range []string{"a", "b", "c", "d", "e", "f"} {
		got := offset("0 * * * *", jobID, nil)
		if got < 0 || got >= topStagger || got != offset("0 * * * *", jobID, nil) {
			t.Errorf("job %s is at %v", jobID, got)
		}
		seen[got] = true
	}
	if len(seen) < 5 {
		t.Errorf("six jobs at %d times", len(seen))
	}
	// First four bytes of sha256("a") are ca978112.
	if got, want := offset("0 */2 * * *", "a", nil), time.Duration(0xca978112%300_000)*time.Millisecond; got != want {
		t.Errorf("job a is at %v, want %v", got, want)
	}
	for _, c := range []struct {
		expr    string
		stagger *int64
		spread  bool
	}{
		{"0 9 * * *", nil, false}, {"5 * * * *", nil, false}, {"0 * * * *", &zero, false}, {"0 0 * * * *", nil, true}, {"7 0 * * * *", nil, false}, {"30 * * * *", &minute, true},
	} {
		s, err := NewSchedule(protocol.CronSchedule{Kind: "cron", Expr: c.expr, StaggerMs: c.stagger}, "a", time.UTC)
		if err != nil || (s.stagger != 0) != c.spread {
			t.Errorf("%s is spread over %v, %v", c.expr, s.stagger, err)
		}
	}
}

func TestDueSlots_AfterALongTimeCostNothing(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	second := int64(1000)
	for _, spec := range []protocol.CronSchedule{{Kind: "every", EveryMs: &second}, {Kind: "cron", Expr: "* * * * * *"}, {Kind: "cron", Expr: "* 9-10 * * 1-5"}} {
		s, err := NewSchedule(spec, "j", time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		first, _ := s.Next(now.Add(-365 * 24 * time.Hour))
		d, ok := dueSlots(s, first, now)
		if !ok {
			t.Fatal("nothing is due")
		}
		if next, _ := s.Next(d.newest); !next.After(now) || d.newest.After(now) {
			t.Errorf("%+v: newest %s", spec, d.newest)
		}
		if len(d.before) != missedRows || d.count < 10_000 {
			t.Errorf("%+v: %d listed of %d", spec, len(d.before), d.count)
		}
		for i, at := range d.before {
			want := d.newest
			if i+1 < len(d.before) {
				want = d.before[i+1]
			}
			if next, _ := s.Next(at); !next.Equal(want) {
				t.Errorf("%+v: %s is followed by %s, not by %s", spec, at, want, next)
			}
		}
	}
}
