package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// definitions of the published schema that payloads are judged by.
var (
	replyDefinitions = map[string]string{
		"connect":       "HelloOk",
		"agents.list":   "AgentsListResult",
		"models.list":   "ModelsListResult",
		"commands.list": "CommandsListResult",
	}
	eventDefinitions = map[string]string{
		"agent": "AgentEvent",
		"chat":  "ChatEvent",
		"tick":  "TickEvent",
	}
)

// newer are members of agent events that the schema, which is older and closed,
// does not know, though its own gateway sends them.
var newer = []string{"sessionKey", "sessionId", "agentId", "lane", "session"}

// Schema is the published schema.
type Schema struct{ definitions map[string]*jsonschema.Schema }

// LoadSchema reads protocol.schema.json.
func LoadSchema(path string) (*Schema, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	names := []string{"ErrorShape", "EventFrame", "GatewayFrame", "RequestFrame", "ResponseFrame"}
	for _, m := range []map[string]string{replyDefinitions, eventDefinitions} {
		for _, name := range m {
			names = append(names, name)
		}
	}
	// The whole has patterns that only JavaScript can read, in definitions that are
	// not used here: only those are taken that are.
	whole, _ := doc.(map[string]any)
	all, _ := whole["definitions"].(map[string]any)
	used := map[string]any{}
	for _, name := range names {
		used[name] = all[name]
	}
	const url = "https://openclaw.ai/protocol.schema.json"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	if err := c.AddResource(url, map[string]any{"definitions": used}); err != nil {
		return nil, err
	}
	s := &Schema{map[string]*jsonschema.Schema{}}
	for _, name := range names {
		compiled, err := c.Compile(url + "#/definitions/" + name)
		if err != nil {
			return nil, fmt.Errorf("definition %s: %w", name, err)
		}
		s.definitions[name] = compiled
	}
	return s, nil
}

func (s *Schema) check(definition string, v any) error {
	if err := s.definitions[definition].Validate(v); err != nil {
		return fmt.Errorf("%s: %w", definition, err)
	}
	return nil
}

// Finding is a frame that is not as it should be.
type Finding struct {
	Message Message
	Err     error
}

func (f Finding) String() string {
	data := f.Message.Data
	if len(data) > 600 {
		data = data[:600]
	}
	return fmt.Sprintf("connection %d: %v\n\t%s", f.Message.Conn, f.Err, data)
}

// Judge checks every message that the gateway sent, and says how many it checked.
func (s *Schema) Judge(messages []Message) (checked int, findings []Finding) {
	methods := map[string]string{} // of requests, by connection and id
	for _, m := range messages {
		if !m.FromServer {
			var r struct{ Type, ID, Method string }
			if json.Unmarshal(m.Data, &r) == nil && r.Type == "req" {
				methods[fmt.Sprint(m.Conn, r.ID)] = r.Method
			}
			continue
		}
		checked++
		if err := s.frame(m, methods); err != nil {
			findings = append(findings, Finding{m, err})
		}
	}
	return checked, findings
}

func (s *Schema) frame(m Message, methods map[string]string) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(m.Data))
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if err := s.check("GatewayFrame", doc); err != nil {
		return err
	}
	frame, _ := doc.(map[string]any)
	switch frame["type"] {
	case "event":
		name, _ := frame["event"].(string)
		return s.event(name, frame["payload"])
	case "res":
		id, _ := frame["id"].(string)
		method, known := methods[fmt.Sprint(m.Conn, id)]
		if !known && id != "invalid" {
			return fmt.Errorf("an answer to no request: %q", id)
		}
		return s.reply(method, frame)
	}
	return fmt.Errorf("a frame of type %v from the gateway", frame["type"])
}

func (s *Schema) event(name string, payload any) error {
	definition, ok := eventDefinitions[name]
	if !ok {
		return required("event "+name, events, payload)
	}
	if members, isObject := payload.(map[string]any); isObject && name == "agent" {
		known := maps.Clone(members)
		for _, n := range newer {
			delete(known, n)
		}
		payload = known
	}
	return s.check(definition, payload)
}

func (s *Schema) reply(method string, frame map[string]any) error {
	if frame["ok"] != true {
		if err := s.check("ErrorShape", frame["error"]); err != nil {
			return err
		}
		if frame["payload"] == nil {
			return nil
		}
		return required("failure of "+method, failures, frame["payload"])
	}
	if definition, ok := replyDefinitions[method]; ok {
		return s.check(definition, frame["payload"])
	}
	payload := frame["payload"]
	if members, isObject := payload.(map[string]any); isObject && method == "agent" && members["status"] != "accepted" {
		return required("final of agent", replies, payload)
	}
	return required("reply of "+method, replies, payload)
}
