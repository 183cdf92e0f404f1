package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
)

// What payloads must have that the published schema says nothing about. A member is
// name:kind; a kind with ? may be absent; =word is that word; a dot goes into an
// object, [] into each item of a list.
var replies = map[string]string{
	"reply of agent":                         "runId:string sessionKey:string agentId:string status:=accepted acceptedAt:int",
	"final of agent":                         "runId:string status:string summary:string result.payloads:list? result.payloads[].mediaUrl:any? result.meta:object?",
	"reply of agent.wait":                    "runId:string status:string startedAt:int? endedAt:int? error:string?",
	"reply of health":                        "ok:bool ts:int",
	"reply of status":                        "",
	"reply of chat.send":                     "runId:string status:string",
	"reply of chat.abort":                    "ok:bool aborted:bool runIds:list",
	"reply of chat.history":                  "sessionKey:string messages:list messages[].role:string messages[].content:any hasMore:bool",
	"reply of chat.startup":                  "sessionKey:string messages:list",
	"reply of chat.inject":                   "ok:bool messageId:string",
	"reply of chat.metadata":                 "models:list commands:list",
	"reply of sessions.subscribe":            "subscribed:bool",
	"reply of sessions.unsubscribe":          "subscribed:bool",
	"reply of sessions.messages.subscribe":   "subscribed:bool key:string",
	"reply of sessions.messages.unsubscribe": "subscribed:bool",
	"reply of sessions.list":                 "ts:int path:string count:int sessions:list sessions[].key:string hasMore:bool",
	"reply of sessions.describe":             "session:any?",
	"reply of sessions.resolve":              "ok:bool",
	"reply of sessions.get":                  "messages:list",
	"reply of sessions.preview":              "ts:int previews:list",
	"reply of sessions.abort":                "ok:bool abortedRunId:any? status:string",
	"reply of sessions.create":               "ok:bool key:string sessionId:string entry:any",
	"reply of sessions.send":                 "runId:string status:string",
	"reply of sessions.reset":                "ok:bool key:string entry:any",
	"reply of sessions.patch":                "ok:bool key:string entry:any",
	"reply of sessions.delete":               "ok:bool key:string deleted:bool archived:list",
	"reply of models.authStatus":             "ts:int providers:list providers[].provider:string providers[].profiles:list",
	"reply of question.list":                 "questions:list",
	"reply of plugin.approval.list":          "*list", // a bare array
}

var failures = map[string]string{
	"failure of agent": "runId:string status:=error summary:string",
}

var events = map[string]string{
	"event connect.challenge": "nonce:string ts:int",
	"event health":            "ok:bool",
	"event shutdown":          "reason:string",
	"event session.message":   "sessionKey:string message:object",
	"event session.tool":      "sessionKey:string",
	"event sessions.changed":  "sessionKey:string ts:int",
	"event run.disposition":   "runId:string",
}

// required checks a payload against its line in a table.
func required(what string, table map[string]string, payload any) error {
	line, known := table[what]
	if !known {
		return fmt.Errorf("%s: nothing is known about it; add it to the table", what)
	}
	if kind, whole := strings.CutPrefix(line, "*"); whole {
		return member(what, payload, true, kind)
	}
	object, ok := payload.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: the payload is no object", what)
	}
	for field := range strings.FieldsSeq(line) {
		path, kind, _ := strings.Cut(field, ":")
		if err := walk(what, object, strings.Split(path, "."), kind); err != nil {
			return err
		}
	}
	return nil
}

func walk(what string, object map[string]any, path []string, kind string) error {
	name, each := strings.CutSuffix(path[0], "[]")
	what += "." + name
	v, present := object[name]
	if len(path) == 1 && !each {
		return member(what, v, present, kind)
	}
	optional := strings.HasSuffix(kind, "?")
	if !present && optional {
		return nil
	}
	items := []any{v}
	if each {
		list, ok := v.([]any)
		if !ok {
			return fmt.Errorf("%s: no list", what)
		}
		items = list
	}
	for _, item := range items {
		inner, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: no object", what)
		}
		if err := walk(what, inner, path[1:], kind); err != nil {
			return err
		}
	}
	return nil
}

func member(what string, v any, present bool, kind string) error {
	kind, optional := strings.CutSuffix(kind, "?")
	if !present {
		if optional {
			return nil
		}
		return fmt.Errorf("%s: missing", what)
	}
	if word, constant := strings.CutPrefix(kind, "="); constant {
		if v != word {
			return fmt.Errorf("%s: %v, want %s", what, v, word)
		}
		return nil
	}
	ok := false
	switch kind {
	case "any":
		ok = true
	case "string":
		s, is := v.(string)
		ok = is && s != ""
	case "bool":
		_, ok = v.(bool)
	case "list":
		_, ok = v.([]any)
	case "object":
		_, ok = v.(map[string]any)
	case "int":
		n, is := v.(json.Number)
		ok = is && !strings.ContainsAny(n.String(), ".eE")
	}
	if !ok {
		return fmt.Errorf("%s: %v is no %s", what, v, kind)
	}
	return nil
}
