package session

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"laneway/shared/setting"
)

// ErrReset is the class of every error of ParseReset.
var ErrReset = errors.New("reset policy")

// defaultHour is when the day of a session begins.
const defaultHour = 4

// maxIdle is longer than anybody waits; minutes beyond it would overflow.
const maxIdle = 10 * 365 * 24 * time.Hour

// typeSections are sections that hold for one type of chats.
var typeSections = setting.Kind{Name: "type", Of: []string{Direct, Group, Thread}}

const resetWords = "daily, daily@HOUR, idle:MINUTES, none, atHour:HOUR, idleMinutes:MINUTES, several behind commas"

// ParseReset reads when sessions start over by themselves: "daily", "daily@HOUR",
// "idle:MINUTES", or both behind a comma; empty, or "none": never. "atHour:HOUR" and
// "idleMinutes:MINUTES" change one number and name no mode. Sections "type/<type>: …"
// and "channel/<name>: …" say it for one type of chats and for one channel. A type
// without a mode has the base's, else daily; a base or a channel without one has daily.
// Errors: ErrReset.
func ParseReset(s string) (Resets, error) {
	r := Resets{Types: map[string]ResetPolicy{}, Channels: map[string]ResetPolicy{}}
	sections, err := setting.Split(s, typeSections, setting.Channel)
	if err != nil {
		return Resets{}, fmt.Errorf("%w: %w", ErrReset, err)
	}
	daily := ResetPolicy{Daily: true, Hour: defaultHour}
	for _, part := range sections {
		if part.Text == "" {
			continue // a base that says nothing
		}
		var w resetSaid
		if err := w.read(part.Text); err != nil {
			return Resets{}, fmt.Errorf("%w: %w", ErrReset, part.In(err))
		}
		switch {
		case part.Kind == setting.Channel.Name:
			r.Channels[part.Name] = w.over(daily)
		case part.Kind == "":
			r.Base = w.over(daily)
		case sections[0].Text != "":
			r.Types[part.Name] = w.over(r.Base)
		default:
			r.Types[part.Name] = w.over(daily)
		}
	}
	return r, nil
}

// resetSaid is what a section says: a whole policy, single numbers, or both.
type resetSaid struct {
	mode, never bool // policy is whole; it is never
	policy      ResetPolicy
	hour        *int
	idle        *time.Duration
}

// over is the policy of a section: its own where it names a mode, else another one, with
// the numbers that it names.
func (w *resetSaid) over(p ResetPolicy) ResetPolicy {
	if w.mode {
		p = w.policy
	}
	if w.hour != nil && p.Daily {
		p.Hour = *w.hour
	}
	if w.idle != nil && p != (ResetPolicy{}) {
		p.Idle = *w.idle
	}
	return p
}

func (w *resetSaid) read(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		if err := w.word(strings.TrimSpace(part)); err != nil {
			return err
		}
	}
	if w.never && (w.policy != (ResetPolicy{}) || w.hour != nil || w.idle != nil) {
		return errors.New("none stands alone")
	}
	return nil
}

func (w *resetSaid) word(part string) error {
	name, value, given := strings.Cut(strings.ReplaceAll(strings.ToLower(part), "@", ":"), ":")
	n, err := strconv.Atoi(value)
	isHour, isMinutes := given && err == nil, given && err == nil && n > 0 && n <= int(maxIdle/time.Minute)
	hour, idle := min(max(n, 0), 23), time.Duration(n)*time.Minute
	switch {
	case name == ResetDaily && !given:
		w.mode, w.policy.Daily, w.policy.Hour = true, true, defaultHour
	case name == ResetDaily && isHour:
		w.mode, w.policy.Daily, w.policy.Hour = true, true, hour
	case name == ResetIdle && isMinutes:
		w.mode, w.policy.Idle = true, idle
	case name == "none" && !given:
		w.mode, w.never = true, true
	case name == "athour" && isHour:
		w.hour = &hour
	case name == "idleminutes" && isMinutes:
		w.idle = &idle
	default:
		return fmt.Errorf("%q is none; want %s", setting.Clip(part), resetWords)
	}
	return nil
}
