package queueing_test

import (
	"errors"
	"strings"
	"testing"

	"laneway/shared/queueing"
)

// TestRuntime22_SettingsByChannel: each row of the settings. Cap and drop have no key of
// a channel.
func TestRuntime22_SettingsByChannel(t *testing.T) {
	t.Parallel()
	base := queueing.Default
	collect, quick := base, base
	collect.Mode = queueing.Collect
	quick.Debounce = 300
	for _, row := range []struct {
		name, text, channel string
		want                queueing.Rules
	}{
		{"nothing said", "", "slack", base},
		{"the base", "collect", "slack", collect},
		{
			"the base, other spellings", "Follow-Up debounce:2s cap=3 drop:oldest", "",
			queueing.Rules{Mode: queueing.Followup, Debounce: 2000, Cap: 3, Drop: queueing.DropOld},
		},
		{"byChannel", "followup; channel/slack: collect", "slack", collect},
		{"byChannel, another one", "collect; channel/slack: steer", "discord", collect},
		{"debounceMsByChannel", "steer debounce:2s; channel/telegram: debounce:300ms", "telegram", quick},
		{"debounceMsByChannel may be nothing", "channel/telegram: debounce:0", "telegram", queueing.Rules{Mode: base.Mode, Cap: base.Cap, Drop: base.Drop}},
		{"both", "channel/a: interrupt debounce:1s", "a", queueing.Rules{Mode: queueing.Interrupt, Debounce: 1000, Cap: base.Cap, Drop: base.Drop}},
		{"what a channel does not say is the base's", "debounce:300 ; channel/a: steer", "a", quick},
		{"cap and drop are the base's", "cap:3 drop:new; channel/a: steer", "a", queueing.Rules{Mode: base.Mode, Debounce: base.Debounce, Cap: 3, Drop: queueing.DropNew}},
		{"channels are compared lower-cased", "channel/SLACK: collect", "Slack", collect},
	} {
		s, err := queueing.Parse(row.text)
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if got := s.For(row.channel); got != row.want {
			t.Errorf("%s: %q gives %+v, want %+v", row.name, row.text, got, row.want)
		}
	}
	if got := (queueing.Settings{}).For("slack"); got != base {
		t.Errorf("zero settings: %+v", got)
	}
}

// TestRuntime22_WhatIsWrongIsNamed: with its section, and what may stand there.
func TestRuntime22_WhatIsWrongIsNamed(t *testing.T) {
	t.Parallel()
	for text, named := range map[string]string{
		"default": "default", "steer collect": "collect", "queue": "queue", "steer-backlog": "steer-backlog",
		"cap:0": `"0"`, "cap:65": `"65"`, "drop:all": `"all"`, "debounce:soon": `"soon"`, "mode:steer": "mode:steer",
		"steer; channel/slack: queue":            `channel/slack: "queue" is none; modes: steer, followup`,
		"steer; channel/slack: debounce:soon":    `channel/slack: Invalid debounce "soon"`,
		"steer; channel/slack: cap:5":            "channel/slack: cap and drop are the same in all channels",
		"steer; channel/slack: collect drop:old": "channel/slack: cap and drop",
		"steer; type/group: collect":             `"type/group" is none; want channel/<name>: …`,
		"steer; channel/slack":                   "no colon behind channel/slack",
		"steer; collect":                         `"collect" has no name`,
	} {
		if _, err := queueing.Parse(text); !errors.Is(err, queueing.ErrSettings) || !strings.Contains(err.Error(), named) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
