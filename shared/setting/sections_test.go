package setting_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"laneway/shared/setting"
)

var kinds = []setting.Kind{setting.Channel, {Name: "type", Of: []string{"direct", "group"}}}

// TestSplit: the base first, each section under its name, blanks and a last semicolon
// as people write them.
func TestSplit(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, text string
		want       []setting.Section
	}{
		{"nothing", "", []setting.Section{{}}},
		{"the base alone, with colons of its own", " steer debounce:1s ", []setting.Section{{Text: "steer debounce:1s"}}},
		{"a section alone", "channel/slack: collect", []setting.Section{{}, {"channel", "slack", "collect"}}},
		{"names are lower-cased", "Channel/SLACK: collect", []setting.Section{{}, {"channel", "slack", "collect"}}},
		{
			"the base and two sections", "daily; channel/slack:idle:5 ;type/group: daily@6;",
			[]setting.Section{{Text: "daily"}, {"channel", "slack", "idle:5"}, {"type", "group", "daily@6"}},
		},
		{"nothing in front of a semicolon", "; channel/slack: collect", []setting.Section{{}, {"channel", "slack", "collect"}}},
	} {
		got, err := setting.Split(row.text, kinds...)
		if err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%s: %+v, %v", row.name, got, err)
		}
	}
}

// TestSplit_NamesWhatIsWrong: the section, and what may stand there.
func TestSplit_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, want string }{
		{"a kind that there is not", "x; chan/slack: collect", `"chan/slack" is none; want channel/<name>: …, type/direct: …, type/group: …`},
		{"a name that there is not", "x; type/dm: daily", `"type/dm" is none`},
		{"no name", "channel/: x", `"channel/" is none`},
		{"a name that cannot stand in a key", "channel/a/b: x", `"channel/a/b" is none`},
		{"no colon", "channel/slack", "no colon behind channel/slack"},
		{"nothing behind it", "x; channel/slack:", "channel/slack says nothing"},
		{"twice", "channel/a: x; channel/A: y", "channel/a is there twice"},
		{"a second base", "steer; collect", `"collect" has no name`},
	} {
		if _, err := setting.Split(row.text, kinds...); !errors.Is(err, setting.ErrSection) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}
