package queueing_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"laneway/shared/queueing"
)

// TestRuntime28_InboundDebounceByChannel: each row of the setting.
func TestRuntime28_InboundDebounceByChannel(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text, channel string
		want                time.Duration
	}{
		{"off by default", "", "slack", 0},
		{"debounceMs", "300ms", "slack", 300 * time.Millisecond},
		{"a bare number is milliseconds", "250", "slack", 250 * time.Millisecond},
		{"nothing", "0", "slack", 0},
		{"byChannel", "300ms; channel/slack: 1.5s", "slack", 1500 * time.Millisecond},
		{"byChannel alone", "channel/slack: 1s", "slack", time.Second},
		{"byChannel alone, another one", "channel/slack: 1s", "discord", 0},
		{"byChannel may be nothing", "300ms; channel/webchat: 0", "webchat", 0},
		{"channels are compared lower-cased", "channel/SLACK: 1S", "Slack", time.Second},
		{"the most", "60s", "slack", time.Minute},
	} {
		in, err := queueing.ParseInbound(row.text)
		if got := in.For(row.channel); err != nil || got != row.want {
			t.Errorf("%s: %q is %s, %v", row.name, row.text, got, err)
		}
	}
	for text, named := range map[string]string{
		"soon": `"soon" is none; want a duration of at most 60s`, "-1": `"-1"`, "61s": `"61s"`, "300ms 1s": `"300ms 1s"`,
		"0; channel/slack: x": `channel/slack: "x" is none`, "0; type/group: 1s": `"type/group" is none; want channel/<name>`,
	} {
		if _, err := queueing.ParseInbound(text); !errors.Is(err, queueing.ErrSettings) || !strings.Contains(err.Error(), named) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
