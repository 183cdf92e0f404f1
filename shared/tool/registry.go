package tool

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"laneway/shared/model"
)

// toolName is what every provider accepts as the name of a function.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Registry is the fixed set of tools of a run. It is safe for concurrent use: it
// never changes after NewRegistry. The nil Registry knows no tool.
type Registry struct {
	order  []*entry
	byName map[string]*entry
}

type entry struct {
	tool   Tool
	spec   Spec
	schema *argumentSchema
}

// NewRegistry makes a registry of the tools, in their order, which is the order
// in which the model is told of them. Every schema is compiled here, once. It
// fails on a name that is bad or taken and on a schema that is no JSON Schema of
// an object: both are mistakes of the program, found at its start.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{byName: make(map[string]*entry, len(tools))}
	for _, t := range tools {
		spec := t.Spec()
		if !toolName.MatchString(spec.Name) {
			return nil, fmt.Errorf("tool name %q: want 1 to 64 letters, digits, _ or -", spec.Name)
		}
		if _, taken := r.byName[spec.Name]; taken {
			return nil, fmt.Errorf("tool %s: registered twice", spec.Name)
		}
		if len(spec.Schema) == 0 {
			spec.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		schema, err := compileSchema(spec.Schema)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", spec.Name, err)
		}
		e := &entry{tool: t, spec: spec, schema: schema}
		r.order = append(r.order, e)
		r.byName[spec.Name] = e
	}
	return r, nil
}

// Lookup finds a tool by its exact name.
func (r *Registry) Lookup(name string) (Tool, bool) {
	e, ok := r.find(name)
	if !ok {
		return nil, false
	}
	return e.tool, true
}

// SpecOf is the description of one tool.
func (r *Registry) SpecOf(name string) (Spec, bool) {
	e, ok := r.find(name)
	if !ok {
		return Spec{}, false
	}
	return e.spec, true
}

// EffectOf says what repeating a call of this tool may do. An unknown tool is
// ReadOnly, because its call never runs anything.
func (r *Registry) EffectOf(name string) Effect {
	e, ok := r.find(name)
	if !ok {
		return ReadOnly
	}
	return e.spec.Effect
}

// LimitOf is how long a call may take by what its arguments say; 0: they say
// nothing; negative: for ever.
func (r *Registry) LimitOf(name string, arguments json.RawMessage) time.Duration {
	e, ok := r.find(name)
	if !ok {
		return 0
	}
	l, ok := e.tool.(Limited)
	if !ok {
		return 0
	}
	return l.Limit(arguments)
}

// Specs lists the tools in the order of registration.
func (r *Registry) Specs() []Spec {
	if r == nil {
		return nil
	}
	specs := make([]Spec, len(r.order))
	for i, e := range r.order {
		specs[i] = e.spec
	}
	return specs
}

// ForModel lists the tools as a model request carries them. The order and the
// bytes are the same for every request of a run, so that provider caches hit.
func (r *Registry) ForModel() []model.Tool {
	if r == nil {
		return nil
	}
	tools := make([]model.Tool, len(r.order))
	for i, e := range r.order {
		tools[i] = model.Tool{Name: e.spec.Name, Description: e.spec.Description, Schema: e.spec.Schema}
	}
	return tools
}

// Only is a registry of those tools that keep says yes to.
func (r *Registry) Only(keep func(name string) bool) *Registry {
	kept := &Registry{byName: map[string]*entry{}}
	if r == nil {
		return kept
	}
	for _, e := range r.order {
		if keep(e.spec.Name) {
			kept.order = append(kept.order, e)
			kept.byName[e.spec.Name] = e
		}
	}
	return kept
}

func (r *Registry) find(name string) (*entry, bool) {
	if r == nil {
		return nil, false
	}
	e, ok := r.byName[name]
	return e, ok
}
