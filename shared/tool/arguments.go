package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"laneway/shared/chars"
)

const (
	// maxProblems bounds the bullets of one error: a wrong anyOf has many.
	maxProblems = 10
	// maxReceived bounds the echo of what the model wrote, in chars.
	maxReceived = 2000
)

// UnknownError says that no tool has the name that the model called.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string { return fmt.Sprintf("Tool %s not found", e.Name) }

// ArgumentError says why the arguments of a call were not accepted. Its text is
// for the model: a bullet per place, then what was received.
type ArgumentError struct {
	Name     string
	Problems []string
	Received string
}

func (e *ArgumentError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Validation failed for tool %q:\n", e.Name)
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "  - %s\n", p)
	}
	fmt.Fprintf(&b, "\nReceived arguments:\n%s", e.Received)
	return b.String()
}

// Check finds the tool of a call and fits the arguments to its schema. The call
// that comes back has arguments that are a JSON object, valid by the schema, with
// near misses repaired ("5" for 5, null for a parameter left out). The error is an
// *UnknownError or an *ArgumentError. Checking an accepted call again changes nothing.
func (r *Registry) Check(call Call) (Call, error) {
	e, ok := r.find(call.Name)
	if !ok {
		return call, &UnknownError{Name: call.Name}
	}
	args, problems := e.schema.fit(call.Arguments)
	if len(problems) > 0 {
		return call, &ArgumentError{Name: call.Name, Problems: problems, Received: received(call.Arguments)}
	}
	call.Arguments = args
	return call, nil
}

// argumentSchema is a compiled schema with its source, which coercion walks.
type argumentSchema struct {
	compiled *jsonschema.Schema
	source   any
}

func compileSchema(raw json.RawMessage) (*argumentSchema, error) {
	source, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if top, _ := source.(map[string]any); top["type"] != "object" {
		return nil, errors.New(`schema: the arguments of a tool are an object, "type" must say so`)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource("arguments.json", source); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	compiled, err := c.Compile("arguments.json")
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &argumentSchema{compiled: compiled, source: source}, nil
}

// noLoader keeps a schema from reading files: a $ref must stay in its document.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("reference to another document: %s", url)
}

// fit returns the arguments to run with, or the problems, one line each.
func (s *argumentSchema) fit(raw json.RawMessage) (json.RawMessage, []string) {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		trimmed = []byte("{}") // a tool without parameters is often called with nothing
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(trimmed))
	if err != nil {
		return nil, []string{"root: the arguments are not valid JSON"}
	}
	value, changed := coerce(s.source, value)
	if err := s.compiled.Validate(value); err != nil {
		var invalid *jsonschema.ValidationError
		if !errors.As(err, &invalid) {
			return nil, []string{"root: " + err.Error()}
		}
		return nil, problemsOf(invalid)
	}
	if !changed {
		return trimmed, nil
	}
	fitted, err := json.Marshal(value)
	if err != nil {
		return nil, []string{"root: " + err.Error()}
	}
	return fitted, nil
}

// problemsOf lists the leaves of a validation error: the branches above them only
// repeat that something below is wrong.
func problemsOf(top *jsonschema.ValidationError) []string {
	printer := message.NewPrinter(language.English)
	var lines []string
	seen := map[string]bool{}
	add := func(path []string, text string) {
		place := strings.Join(path, ".")
		if place == "" {
			place = "root"
		}
		if line := place + ": " + text; !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		at := func(name string) []string { return append(append([]string{}, e.InstanceLocation...), name) }
		switch k := e.ErrorKind.(type) {
		case *kind.Required:
			for _, name := range k.Missing {
				add(at(name), "is required")
			}
		case *kind.AdditionalProperties:
			for _, name := range k.Properties {
				add(at(name), "is not a parameter of this tool")
			}
		default:
			if len(e.Causes) == 0 {
				add(e.InstanceLocation, e.ErrorKind.LocalizedString(printer))
			}
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(top)
	if more := len(lines) - maxProblems; more > 0 {
		lines = append(lines[:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return lines
}

// received shows the model its own arguments, indented where they are JSON.
func received(raw json.RawMessage) string {
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	var indented bytes.Buffer
	if json.Indent(&indented, raw, "", "  ") == nil {
		text = indented.String()
	}
	if cut := chars.Head(text, maxReceived); len(cut) < len(text) {
		return cut + "…"
	}
	return text
}
