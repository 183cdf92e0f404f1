package model

import (
	"encoding/json"
	"testing"
)

func TestArgsAreAlwaysJSONAndComeBackAsWritten(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, wrote, args, back, object string }{
		{"object", `{"a":1}`, `{"a":1}`, `{"a":1}`, `{"a":1}`},
		{"nothing", "", `{}`, `{}`, `{}`},
		{"white space", " \n", `{}`, `{}`, `{}`},
		{"padded", " {} \n", `{}`, `{}`, `{}`},
		{"cut", `{"a":`, `"{\"a\":"`, `{"a":`, `{"arguments":"{\"a\":"}`},
		{"a number", `7`, `7`, `7`, `{"arguments":"7"}`},
		{"null", `null`, `null`, `null`, `{}`},
		{"a list", `[1]`, `[1]`, `[1]`, `{"arguments":"[1]"}`},
		{"no JSON", "a\x00\xff", `"a\u0000\ufffd"`, "a\x00\ufffd", "{\"arguments\":\"a\\u0000\ufffd\"}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			args := Args(row.wrote)
			if string(args) != row.args || !json.Valid(args) {
				t.Errorf("args = %s, want %s", args, row.args)
			}
			if got := ArgsText(args); got != row.back {
				t.Errorf("text = %q, want %q", got, row.back)
			}
			if got := ArgsObject(args); string(got) != row.object {
				t.Errorf("object = %s, want %s", got, row.object)
			}
		})
	}
	if got := ArgsText(nil); got != "{}" {
		t.Errorf("text of nothing = %q", got)
	}
	if got := ArgsObject(nil); string(got) != "{}" {
		t.Errorf("object of nothing = %s", got)
	}
	if got := ArgsObject(json.RawMessage(`{"a"`)); string(got) != `{"arguments":"{\"a\""}` {
		t.Errorf("object of broken JSON = %s", got)
	}
}

func TestCallIDs(t *testing.T) {
	t.Parallel()
	for _, keep := range []string{"toolu_01A-b", "call_w1"} {
		if got := PlainCallID(keep); got != keep {
			t.Errorf("%s became %s", keep, got)
		}
	}
	for _, odd := range []string{"", "a|b", "ü", string(make([]byte, 65))} {
		if got := PlainCallID(odd); got == odd || got != PlainCallID(odd) || PlainCallID(got) != got {
			t.Errorf("%q became %q", odd, got)
		}
	}
	if PlainCallID("a|b") == PlainCallID("a/b") {
		t.Error("two ids became one")
	}
}
