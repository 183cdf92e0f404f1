package profile_test

import (
	"strconv"
	"testing"
	"time"

	"laneway/shared/clock/clocktest"
	"laneway/shared/model/profile"
)

// Runtime 7.5: 0 and unset are off, else 1 s to 10 min.
func TestSkipTTL_7_5(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"": 0, " ": 0, "0": 0, "1": time.Second, "1000": time.Second, "1001": 1001 * time.Millisecond, "60000": time.Minute,
		"600000": 10 * time.Minute, "600001": 10 * time.Minute, "9223372036854775807": 10 * time.Minute,
	} {
		if got, err := profile.ParseSkipTTL(text); err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"abc", "-5", "1.5", "5s"} {
		if got, err := profile.ParseSkipTTL(text); err == nil {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestSkips_AreForATimeAndBounded(t *testing.T) {
	t.Parallel()
	c := clocktest.New()
	s := profile.NewSkips(c, time.Minute)
	k := profile.Skip{Session: "s", Provider: "b", Model: "two", Profile: "b:1"}
	s.Note(k)
	for _, other := range []profile.Skip{
		{Session: "t", Provider: "b", Model: "two", Profile: "b:1"},
		{Session: "s", Provider: "c", Model: "two", Profile: "b:1"},
		{Session: "s", Provider: "b", Model: "three", Profile: "b:1"},
		{Session: "s", Provider: "b", Model: "two", Profile: "b:2"},
	} {
		if s.Until(other).After(c.Now()) {
			t.Errorf("%+v is passed by, too", other)
		}
	}
	if got := s.Until(k).Sub(c.Now()); got != time.Minute {
		t.Errorf("for %s", got)
	}
	c.Advance(time.Second)
	for i := range 2000 { // the oldest goes first
		s.Note(profile.Skip{Session: strconv.Itoa(i)})
	}
	if s.Until(k).After(c.Now()) || !s.Until(profile.Skip{Session: "1999"}).After(c.Now()) {
		t.Error("it grows for ever, or forgets the newest")
	}
	off := profile.NewSkips(c, 0)
	off.Note(k)
	if !off.Until(k).IsZero() {
		t.Error("what is off remembers")
	}
}
