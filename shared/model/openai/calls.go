package openai

import (
	"encoding/json"

	"laneway/shared/id"
	"laneway/shared/model"
)

// calls puts tool calls together from pieces. The book says: each piece has an
// index, the first one of a call its id and name too. Servers leave out the
// index, use 0 for every call, repeat id and name in each piece, or have no ids.
type calls struct {
	all     []*call
	byIndex map[int]*call
}

type call struct {
	id, name string
	args     []byte
}

func (c *calls) add(d callDelta) {
	t := c.target(d)
	if t.id == "" {
		t.id = d.ID
	}
	if t.name == "" {
		t.name = d.Function.Name
	}
	t.args = appendArgs(t.args, d.Function.Arguments)
}

// target finds the call that a piece belongs to, or begins one.
func (c *calls) target(d callDelta) *call {
	if d.Index != nil {
		if t := c.byIndex[*d.Index]; t != nil && !t.isOtherThan(d) {
			return t
		}
		t := c.begin()
		if c.byIndex == nil {
			c.byIndex = make(map[int]*call)
		}
		c.byIndex[*d.Index] = t
		return t
	}
	if d.ID != "" {
		for _, t := range c.all {
			if t.id == d.ID {
				return t
			}
		}
		return c.begin()
	}
	if n := len(c.all); n > 0 && !c.all[n-1].isOtherThan(d) {
		return c.all[n-1]
	}
	return c.begin()
}

func (c *calls) begin() *call {
	t := &call{}
	c.all = append(c.all, t)
	return t
}

// isOtherThan says that d cannot be a piece of t: another id, or, where ids do not
// tell, a name although t is complete or has another one.
func (t *call) isOtherThan(d callDelta) bool {
	if d.ID != "" && t.id != "" {
		return d.ID != t.id
	}
	if d.Function.Name == "" || t.name == "" {
		return false
	}
	return d.Function.Name != t.name || json.Valid(t.args)
}

func appendArgs(args []byte, raw json.RawMessage) []byte {
	if len(raw) == 0 || string(raw) == "null" {
		return args
	}
	if raw[0] != '"' {
		return append(args, raw...)
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return args
	}
	return append(args, s...)
}

// blocks gives the calls, in the order in which they began, each with an id of
// its own. ok is false if one has no name: such an answer is broken. Of an answer
// that was cut by the token limit only the calls that are complete are given.
func (c *calls) blocks(newID id.Source, cut bool) (out []model.Block, ok bool) {
	seen := make(map[string]bool, len(c.all))
	for _, t := range c.all {
		if cut && (t.name == "" || !json.Valid(t.args)) {
			continue
		}
		if t.name == "" {
			return nil, false
		}
		if t.id == "" || seen[t.id] {
			t.id = newID()
		}
		seen[t.id] = true
		out = append(out, model.Block{Type: model.ToolCall, ID: t.id, Name: t.name, Arguments: model.Args(string(t.args))})
	}
	return out, true
}
