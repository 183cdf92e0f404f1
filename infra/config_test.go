package main

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"laneway/shared/queue"
)

func TestAnEmptyContextDeploysTheDefaults(t *testing.T) {
	t.Parallel()
	c, err := ParseConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Retain || c.Emulator || c.Architecture != ARM64 || c.Name != "laneway" {
		t.Errorf("defaults are %+v", c)
	}
	for _, d := range queue.Definitions() {
		if c.Lanes[d.Lane] != d.Concurrency {
			t.Errorf("lane %s has a cap of %d, its definition says %d", d.Lane, c.Lanes[d.Lane], d.Concurrency)
		}
	}
}

// The file beside the app spells every key out, so that it documents them; a value
// there that differs from the default of the code would be one of two truths.
func TestTheFileHoldsEveryKeyWithItsDefault(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../cdk.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Context map[string]any }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	fromFile, err := ParseConfig(file.Context)
	if err != nil {
		t.Fatal(err)
	}
	want := defaults()
	a, _ := json.Marshal(fromFile)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		t.Errorf("the file says\n%s\nthe code\n%s", a, b)
	}
	for key := range want.keys() {
		if _, ok := file.Context[prefix+key]; !ok && key != "assets" {
			t.Errorf("the file does not mention %s%s", prefix, key)
		}
	}
}

func TestValuesOfTheCommandLineAndOfTheFileAreRead(t *testing.T) {
	t.Parallel()
	c, err := ParseConfig(map[string]any{
		"laneway.name": "second", "laneway.region": "eu-central-1", "laneway.architecture": "x86_64",
		"laneway.lane.main": "32", "laneway.lane.cron": float64(4), "laneway.runner.timeout": 300, "laneway.runner.memory": "1024",
		"laneway.emulator": "true", "laneway.two.way": false, "laneway.removal": "destroy", "laneway.alarms": "few",
		"laneway.alarm.mail": "ops@example.com", "laneway.model": "bedrock/us.anthropic.claude-x-v1:0",
		"aws:cdk:enable-path-metadata": true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "second" || c.Region != "eu-central-1" || c.Architecture != X8664 || !c.Emulator || c.TwoWay || c.Retain || c.Alarms != FewAlarms {
		t.Errorf("got %+v", c)
	}
	if c.Lanes[queue.Main] != 32 || c.Lanes[queue.Cron] != 4 {
		t.Errorf("lanes are %v", c.Lanes)
	}
	if got := c.Sizes[Runner]; got != (Size{MemoryMB: 1024, TimeoutSeconds: 300}) {
		t.Errorf("the runner is given %+v", got)
	}
}

func TestWrongValuesAreNamed(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		key   string
		value any
	}{
		{"laneway.nmae", "x"},
		{"laneway.name", "Laneway"},
		{"laneway.name", "a-name-that-is-too-long-for-a-bucket"},
		{"laneway.region", "mars"},
		{"laneway.stage", "a/b"},
		{"laneway.architecture", "amd64"},
		{"laneway.lane.main", 1},
		{"laneway.lane.main", "1001"},
		{"laneway.lane.other", 2},
		{"laneway.gateway.timeout", 30}, // API Gateway would have given up
		{"laneway.runner.timeout", 901},
		{"laneway.runner.memory", 64},
		{"laneway.runner.memory", "1.5"},
		{"laneway.runner.memory", 1.5},
		{"laneway.log.days", 31},
		{"laneway.alarms", "some"},
		{"laneway.alarm.mail", "nobody"},
		{"laneway.alarm.mail", "Somebody <ops@example.com>"},
		{"laneway.removal", "snapshot"},
		{"laneway.emulator", "yes"},
		{"laneway.model", "gpt"},
		{"laneway.fallbacks", "gpt"},
		{"laneway.session.reset", "weekly"},
		{"laneway.queue", "steer-backlog"},
		{"laneway.fallback.skip", "10s"},
		{"laneway.stuck.warn", -1},
		{"laneway.log.level", "loud"},
		{"laneway.name", []any{"laneway"}},
		{"laneway.name", nil},
	} {
		_, err := ParseConfig(map[string]any{row.key: row.value})
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), row.key) {
			t.Errorf("%s = %v: got %v", row.key, row.value, err)
		}
	}
}

// What a function would refuse at its start is refused here, with the key and what is
// wrong with it; what it takes is taken, in every spelling.
func TestSettingsOfTheFunctionsAreReadByTheirOwnParsers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ key, value, refused string }{
		{"laneway.queue", "cap:99", `Invalid cap "99". Use a whole number from 1 to 64`},
		{"laneway.queue", "cap:0", `Invalid cap "0"`},
		{"laneway.queue", "debounce:1.2.3s", `Invalid debounce "1.2.3s"`},
		{"laneway.queue", "debounce:25h", `Invalid debounce "25h"`},
		{"laneway.queue", "steer collect", `"collect" is none; modes: steer, followup`},
		{"laneway.queue", "steer; channel/slack: cap:5", "channel/slack: cap and drop are the same in all channels"},
		{"laneway.queue", "steer; type/group: collect", `"type/group" is none; want channel/<name>`},
		{"laneway.queue", "Follow-Ups DEBOUNCE=1d drop:oldest cap:64", ""},
		{"laneway.queue", "steer debounce:500ms; channel/slack: collect debounce:2s; channel/telegram: debounce:300ms", ""},
		{"laneway.queue", "", ""},
		{"laneway.inbound.debounce", "2m", `"2m" is none; want a duration of at most 60s`},
		{"laneway.inbound.debounce", "300ms; channel/slack: soon", `channel/slack: "soon" is none`},
		{"laneway.inbound.debounce", "300ms; channel/slack: 1.5s", ""},
		{"laneway.inbound.debounce", "0", ""},
		{"laneway.session.reset", "idle:0", `"idle:0" is none; want daily`},
		{"laneway.session.reset", "daily,weekly", `"weekly" is none`},
		{"laneway.session.reset", "daily; type/dm: idle:5", `"type/dm" is none; want type/direct`},
		{"laneway.session.reset", "daily; channel/slack:", "channel/slack says nothing"},
		{"laneway.session.reset", "none", ""},
		{"laneway.session.reset", "daily@4, idle:60", ""},
		{"laneway.session.reset", "daily@4,idle:60; type/group: idleMinutes:30; channel/discord: none", ""},
		{"laneway.session.reset", "", ""},
		{"laneway.model", "bedrock", "bedrock/<model id>"},
		{"laneway.model", "bedrock/", "bedrock/<model id>"},
		{"laneway.model", "demo/other", "takes no model id"},
		{"laneway.model", "antropic/claude", "unknown provider antropic"},
		{"laneway.model", "bedrock/a*", `"bedrock/a*" is not`},
		{"laneway.model", "anthropic/", ""}, // its default model
		{"laneway.model", "demo/demo", ""},
		{"laneway.fallbacks", "openai/a, gpt", `"gpt" is not <provider>/<model id>`},
		{"laneway.fallbacks", "bedrock/a*", `"bedrock/a*" is not`},
		{"laneway.fallback.skip", "-5", "must be a number of milliseconds, 0 for none"},
		{"laneway.fallback.skip", "0", ""},
		{"laneway.fallbacks", "none", ""},
		{"laneway.fallbacks", "openai/a ,  bedrock/b,", ""},
	} {
		_, err := ParseConfig(map[string]any{row.key: row.value})
		switch {
		case row.refused == "" && err != nil:
			t.Errorf("%s = %q: %v", row.key, row.value, err)
		case row.refused != "" && (!errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), row.key+": ") || !strings.Contains(err.Error(), row.refused)):
			t.Errorf("%s = %q: got %v, want %s", row.key, row.value, err, row.refused)
		}
	}
}

func TestAllMistakesAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := ParseConfig(map[string]any{"laneway.timers": 0, "laneway.removal": "no", "laneway.oops": 1})
	for _, key := range []string{"laneway.timers", "laneway.removal", "laneway.oops"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s is not in %v", key, err)
		}
	}
}

func TestAMissingZipIsSaidWithTheCommandThatMakesIt(t *testing.T) {
	t.Parallel()
	c := defaults()
	c.Architecture, c.Assets = X8664, t.TempDir()
	err := checkAssets(&c)
	if err == nil || !strings.Contains(err.Error(), "scripts/build.sh functions amd64") {
		t.Errorf("got %v", err)
	}
}
