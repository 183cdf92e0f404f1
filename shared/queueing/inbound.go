package queueing

import (
	"fmt"
	"strings"
	"time"

	"laneway/shared/setting"
)

// Inbound is how long a text that finds nobody at work waits for more of its sender
// (spec: runtime 2.8), by channel. The zero value is not at all.
type Inbound struct {
	Base     time.Duration
	Channels map[string]time.Duration // lower-cased, in the place of Base
}

// For is the time in a channel; 0: texts do not wait.
func (i Inbound) For(channel string) time.Duration {
	if d, ok := i.Channels[strings.ToLower(channel)]; ok {
		return d
	}
	return i.Base
}

// MaxInbound bounds how long a text may wait: somebody waits for its answer.
const MaxInbound = time.Minute

// ParseInbound reads "<duration>; channel/<name>: <duration>; …", such as
// "300ms; channel/slack: 1s"; a bare number is milliseconds, empty is not at all.
// Errors: ErrSettings.
func ParseInbound(text string) (Inbound, error) {
	in := Inbound{Channels: map[string]time.Duration{}}
	sections, err := setting.Split(text, setting.Channel)
	if err != nil {
		return Inbound{}, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	for _, part := range sections {
		if part.Text == "" {
			continue
		}
		ms, ok := Milliseconds(strings.ToLower(part.Text))
		d := time.Duration(ms) * time.Millisecond
		switch {
		case !ok || d > MaxInbound:
			err := fmt.Errorf("%q is none; want a duration of at most %ds, such as 300ms or 1.5s", setting.Clip(part.Text), MaxInbound/time.Second)
			return Inbound{}, fmt.Errorf("%w: %w", ErrSettings, part.In(err))
		case part.Kind == "":
			in.Base = d
		default:
			in.Channels[part.Name] = d
		}
	}
	return in, nil
}
