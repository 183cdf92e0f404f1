package protocol

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

func TestDecodeRequest_ValidFrames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"connect": "1:6f0c", "agent": "2:77aa", "chat_send": "3:01"} {
		raw, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		r, err := DecodeRequest(raw)
		if err != nil || r.ID != want || len(r.Params) == 0 {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
	}
	r, err := DecodeRequest([]byte(` {"type":"req","id":"a","method":"health","traceparent":"00-1","expectedProfileId":"p"} `))
	if err != nil || r.Params != nil || r.Method != "health" || r.Traceparent != "00-1" || r.ExpectedProfileID != "p" {
		t.Errorf("without params: %+v, %v", r, err)
	}
}

func TestDecodeRequest_NotJSONIsIgnorable(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", "\x00", "hello {", `{"type":"req"`, `{"type":"req",}`, `{"a":01}`, `{} {}`, `{"a":"` + "\n" + `"}`, `{"id":"\q"}`,
		`{"id":"\u12g4"}`, "\xff", `{"id":"` + "\xff" + `"}`, `[1,]`, `nul`, `nullx`, `-`, `1.`, `1e`, `{1:2}`, `{"a" 1}`, `"a`, `tru`, `{"a":1 "b":2}`,
		`[1 2]`, `"\`, `{"type":"req","id":"\u00`, "\ufeff{}",
	} {
		if r, err := DecodeRequest([]byte(text)); !errors.Is(err, ErrNotJSON) {
			t.Errorf("%q: got %+v, %v; want ErrNotJSON", text, r, err)
		}
	}
}

func TestDecodeRequest_RefusalsNameWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ frame, id, text string }{
		{`{"type":"req","id":"m1","params":{}}`, "m1", "must have required property 'method'"},
		{`{"type":"req","id":7,"method":"x"}`, "invalid", "at /id: must be string"},
		{`{"type":"res","id":"m2","ok":true}`, "m2", "must have required property 'method'; at root: unexpected property 'ok'; at /type: must be equal to constant 'req'"},
		{`{"type":"req","id":"m3","method":"health","extra":1}`, "m3", "at root: unexpected property 'extra'"},
		{`{"type":"event","event":"x"}`, "invalid", "must have required property 'id'; must have required property 'method'; at root: unexpected property 'event'; at /type: must be equal to constant 'req'"},
		{`{"action":"send","data":1}`, "invalid", "must have required property 'type'; must have required property 'id'; must have required property 'method'; at root: unexpected property 'action'; at root: unexpected property 'data'"},
		{`[1,2]`, "invalid", "must be object"},
		{`null`, "invalid", "must be object"},
		{`"text"`, "invalid", "must be object"},
		{`{"type":"req","id":"","method":"x"}`, "invalid", "at /id: must not have fewer than 1 characters"},
		{`{"type":"req","id":"a","method":""}`, "a", "at /method: must not have fewer than 1 characters"},
		{`{"type":"req","id":"a","method":"x","traceparent":"` + strings.Repeat("t", 129) + `"}`, "a", "at /traceparent: must not have more than 128 characters"},
		{`{"type":"req","id":"a","method":"x","expectedProfileId":""}`, "a", "at /expectedProfileId: must not have fewer than 1 characters"},
		{`{"type":"req","id":"` + strings.Repeat("i", 513) + `","method":"x"}`, "invalid", "at /id: must not have more than 512 bytes"},
		{`{"type":"req","id":"a\u0007","method":"x"}`, "a\a", "at /id: must not have control characters"},
		{`{"type":"req","id":"a","id":"b","method":"x"}`, "a", "at root: repeated property 'id'"},
		{`{"type":"req","id":"a","Method":"x"}`, "a", "must have required property 'method'; at root: unexpected property 'Method'"},
		{`{"type":"req","id":"a","method":null}`, "a", "at /method: must be string"},
		{`{"type":"req","id":"d","method":"x","params":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, "d", "nested deeper than 256 levels"},
	} {
		r, err := DecodeRequest([]byte(c.frame))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%.80s: got %v, want an *Error", c.frame, err)
			continue
		}
		if r.ID != c.id || e.Code != CodeInvalidRequest || e.Message != "invalid request frame: "+c.text {
			t.Errorf("%.80s:\n got id %q, %s\nwant id %q, invalid request frame: %s", c.frame, r.ID, e, c.id, c.text)
		}
		mustBeFrame(t, AppendError(nil, r.ID, e))
	}
}

func TestDecodeRequest_KeyWithEscapesIsTheSameKey(t *testing.T) {
	t.Parallel()
	r, err := DecodeRequest([]byte(`{"type":"req","\u0069d":"x","method":"health"}`))
	if err != nil || r.ID != "x" {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestDecodeRequest_ErrorStaysSmallWhateverWasSent(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"` + strings.Repeat("ü", 1<<16) + `":1`)
	for range 5000 {
		b.WriteString(`,"x` + strings.Repeat("y", 200) + `":1`)
	}
	b.WriteString("}")
	_, err := DecodeRequest([]byte(b.String()))
	if err == nil || len(err.Error()) > 2000 {
		t.Errorf("error of %d bytes", len(err.Error()))
	}
	if !strings.Contains(err.Error(), "and 4996 more") {
		t.Errorf("the rest is not counted: %v", err)
	}
}

// mustBeFrame wants one valid JSON object that a client would not drop.
func mustBeFrame(t *testing.T, raw []byte) Frame {
	t.Helper()
	if !json.Valid(raw) {
		t.Fatalf("no JSON: %q", raw)
	}
	f, err := DecodeFrame(raw)
	if err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	switch f.Type {
	case "res":
		if f.ID == "" || !f.OK && (f.Err == nil || f.Err.Code == "" || f.Err.Message == "" || f.Err.RetryAfterMs < 0) {
			t.Fatalf("a client drops %q", raw)
		}
	case "event":
		if f.Event == "" {
			t.Fatalf("a client drops %q", raw)
		}
	case "req":
	default:
		t.Fatalf("no frame: %q", raw)
	}
	return f
}
