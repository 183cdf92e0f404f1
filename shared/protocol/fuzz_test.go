package protocol

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

func seedFrames(f *testing.F) [][]byte {
	f.Helper()
	var out [][]byte
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no samples: %v", err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		out = append(out, raw)
	}
	for _, s := range []string{
		`{`, `null`, `[[[[`, `{"type":"req","id":"a","method":"b"}`, `{"type":"req","id":"\ud83d\udc4b\udc4b","method":"\u0000"}`, `{"a":1e999,"b":-0.0}`,
		"\xff\xfe", `{"type":"req","id":"a","method":"b","params":[1,{"x":"y"}]}`,
	} {
		out = append(out, []byte(s))
	}
	return out
}

// FuzzDecodeFrame: never a panic; not JSON exactly when it is not; what is refused
// is answered with a valid frame; what is accepted survives encoding.
func FuzzDecodeFrame(f *testing.F) {
	for _, s := range seedFrames(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := DecodeRequest(raw)
		var e *Error
		switch {
		case errors.Is(err, ErrNotJSON):
			if json.Valid(raw) && utf8.Valid(raw) {
				t.Fatalf("%q is JSON", raw)
			}
			return
		case errors.As(err, &e):
			mustBeFrame(t, AppendError(nil, r.ID, e))
			if len(e.Message) > 4096 {
				t.Fatalf("an error of %d bytes", len(e.Message))
			}
			if e.Message == "invalid request frame: "+errDepth.Error() {
				return
			}
		case err != nil:
			t.Fatalf("an error of another kind: %v", err)
		}
		if !json.Valid(raw) {
			t.Fatalf("%q is not JSON", raw)
		}
		if err != nil {
			return
		}
		var params any
		if r.Params != nil {
			params = r.Params
		}
		again, err := AppendRequest(nil, r.ID, r.Method, params)
		if err != nil {
			t.Fatal(err)
		}
		r2, err := DecodeRequest(again)
		if err != nil || r2.ID != r.ID || r2.Method != r.Method || string(r2.Params) != string(r.Params) {
			t.Fatalf("%q became %q: %v", raw, again, err)
		}
		mustBeFrame(t, AppendError(nil, r.ID, UnknownMethod(r.Method)))
	})
}

// FuzzParams: never a panic for any method; a refusal is a valid frame; what is
// accepted is JSON.
func FuzzParams(f *testing.F) {
	list := Methods()
	for i := range list {
		f.Add(uint8(i), []byte(`{}`))
	}
	for _, s := range samples {
		for i, m := range list {
			if m.Name == s.method {
				f.Add(uint8(i), []byte(s.params))
			}
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, raw []byte) {
		m := list[int(n)%len(list)]
		e := DecodeAny(m.Name, raw)
		if e == nil {
			if len(raw) > 0 && !json.Valid(raw) && len(trimSpace(raw)) > 0 {
				t.Fatalf("%s took %q", m.Name, raw)
			}
			return
		}
		if e.Code != CodeInvalidRequest || len(e.Message) > 4096 {
			t.Fatalf("%s: %s, %d bytes", m.Name, e.Code, len(e.Message))
		}
		mustBeFrame(t, AppendError(nil, "r", e))
	})
}

func trimSpace(b []byte) []byte {
	s := scanner{b: b}
	s.peek()
	return b[s.i:]
}

// FuzzText: every way of cutting keeps whole runes and the promised size.
func FuzzText(f *testing.F) {
	f.Add("aü👧\x00\"\\\u2028", 9)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = 6 + int(uint(limit)%512)
		head, _ := TrimText(s, limit)
		if EncodedLen(head) > limit || s[:len(head)] != head {
			t.Fatalf("%q at %d: %q", s, limit, head)
		}
		want, err := Marshal(s)
		if err != nil || string(AppendString(nil, s)) != string(want) {
			t.Fatalf("%q: %s, %s", s, AppendString(nil, s), want)
		}
	})
}
