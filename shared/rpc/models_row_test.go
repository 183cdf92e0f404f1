package rpc

import (
	"encoding/json"
	"testing"

	"laneway/shared/model"
	"laneway/shared/protocol"
)

// TestModelRows_SayHowTheyThink: what models.list says of a model's levels and its place,
// for each kind of model.
func TestModelRows_SayHowTheyThink(t *testing.T) {
	t.Parallel()
	const (
		plain = `[{"id":"off","label":"off"},{"id":"minimal","label":"minimal"},{"id":"low","label":"low"},{"id":"medium","label":"medium"},{"id":"high","label":"high"}]`
		off   = `[{"id":"off","label":"off"}]`
	)
	for name, row := range map[string]struct {
		info     model.Info
		thinking string // of the default agent
		want     string
	}{
		"the default":         {info: model.Info{Provider: "p", ID: "first", Reasons: true}, want: `"tags":["default"],"thinkingLevels":` + plain},
		"another one":         {info: model.Info{Provider: "p", ID: "second", Reasons: true}, want: `"thinkingLevels":` + plain},
		"the id elsewhere":    {info: model.Info{Provider: "q", ID: "first", Plain: true}, want: `"thinkingLevels":` + off + `,"thinkingDefault":"off"`},
		"a level by default":  {info: model.Info{Provider: "p", ID: "second", Reasons: true}, thinking: "low", want: `"thinkingLevels":` + plain + `,"thinkingDefault":"low"`},
		"that it lacks":       {info: model.Info{Provider: "p", ID: "second", Reasons: true}, thinking: "max", want: `"thinkingLevels":` + plain + `,"thinkingDefault":"high"`},
		"none that it may do": {info: model.Info{Provider: "p", ID: "second", Plain: true}, thinking: "high", want: `"thinkingLevels":` + off + `,"thinkingDefault":"off"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got protocol.ModelRow
			setLevels(&got, &row.info, []Agent{
				{ID: "other", Provider: "p", Model: "second", Thinking: "minimal"},
				{ID: "main", Provider: "p", Model: "first", Thinking: row.thinking},
			})
			want := `{"id":"","name":"","provider":"",` + row.want + `}`
			if b, err := json.Marshal(got); err != nil || string(b) != want {
				t.Errorf("%s, %v\nwant %s", b, err, want)
			}
		})
	}
}
