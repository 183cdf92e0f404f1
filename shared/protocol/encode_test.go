package protocol

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"
)

func TestAppend_Frames(t *testing.T) {
	t.Parallel()
	type pay struct {
		Text string `json:"text"`
	}
	res, err := AppendResult(nil, "7", pay{"<b>&\u2028ü"})
	if err != nil {
		t.Fatal(err)
	}
	event, err := AppendEvent([]byte("x"), EventTick, Tick{TS: 5})
	if err != nil {
		t.Fatal(err)
	}
	bare, err := AppendResult(nil, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := AppendResult(nil, "r", json.RawMessage(`{"a": "<"}`))
	if err != nil {
		t.Fatal(err)
	}
	req, err := AppendRequest(nil, "1", "health", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ got, want string }{
		{string(res), `{"type":"res","id":"7","ok":true,"payload":{"text":"<b>&\u2028ü"}}`},
		{string(event), `x{"type":"event","event":"tick","payload":{"ts":5}}`},
		{string(bare), `{"type":"res","id":"invalid","ok":true}`},
		{string(raw), `{"type":"res","id":"r","ok":true,"payload":{"a": "<"}}`},
		{string(req), `{"type":"req","id":"1","method":"health"}`},
		{
			string(AppendFailure(nil, "f", FinalThrown("k", "no model"), Unavailable("no model"))),
			`{"type":"res","id":"f","ok":false,"payload":{"runId":"k","status":"error","summary":"no model"},"error":{"code":"UNAVAILABLE","message":"no model"}}`,
		},
		{
			string(AppendError(nil, "e", Unavailable("later").Retry(1500*time.Millisecond))),
			`{"type":"res","id":"e","ok":false,"error":{"code":"UNAVAILABLE","message":"later","retryable":true,"retryAfterMs":1500}}`,
		},
		{
			string(AppendError(nil, "s", MissingScope(ScopeWrite))),
			`{"type":"res","id":"s","ok":false,"error":{"code":"FORBIDDEN","message":"missing scope: operator.write","details":{"code":"MISSING_SCOPE","missingScope":"operator.write","requiredScopes":["operator.write"]}}}`,
		},
	} {
		if c.got != c.want {
			t.Errorf("\n got %s\nwant %s", c.got, c.want)
		}
	}
}

func TestAppendError_AlwaysMakesAFrame(t *testing.T) {
	t.Parallel()
	for _, e := range []*Error{
		nil,
		{},
		{Code: "X", Message: "m", RetryAfterMs: -5},
		{Code: "X", Message: "\xff\x00\u2028", Details: map[string]any{"bad": math.NaN()}},
		{Code: "X", Message: "m", Details: map[string]any{"f": func() {}}},
		VersionMismatch(3, 3),
		TokenMismatch(), TokenMissing(), ConnectFirst(), ConnectOnce(), InvalidRole(), NoSession("k"), UnknownAgent("agent", "ghost"),
		AgentConflict(), ChatConflict(), SessionBusy(), QueueFull(), DeviceRefused(ErrDeviceNonce),
	} {
		mustBeFrame(t, AppendError(nil, "r", e))
		mustBeFrame(t, AppendFailure(nil, "r", math.Inf(1), e))
	}
}

func TestAppend_PayloadWithoutJSONIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := AppendResult(nil, "r", math.NaN()); err == nil {
		t.Error("NaN was encoded")
	}
	if _, err := AppendEvent(nil, "x", func() {}); err == nil {
		t.Error("a func was encoded")
	}
}

func TestError_AnswersQuestions(t *testing.T) {
	t.Parallel()
	base := Invalid("x")
	with := base.With("reason", "r").With("n", 1)
	if base.Details != nil || with.Detail("reason") != "r" || with.Detail("n") != "" || with.Detail("none") != "" {
		t.Errorf("With changed the original or lost a detail: %+v, %+v", base, with)
	}
	if base.Retry(-time.Second).RetryAfterMs != 0 {
		t.Error("negative retryAfterMs")
	}
	inner := errors.Join(errors.New("secret path"), SessionBusy())
	if got := AsError(inner); got.Detail("reason") != ReasonSessionBusy || !got.Retryable {
		t.Errorf("got %v", got)
	}
	if got := AsError(errors.New("dial /secret")); got.Message != "internal error" {
		t.Errorf("inner text leaves: %v", got)
	}
	if AsError(nil) != nil {
		t.Error("nil became an error")
	}
}

func TestError_RoundTrip(t *testing.T) {
	t.Parallel()
	f := mustBeFrame(t, AppendError(nil, "r", Unavailable("gateway starting").With("reason", ReasonStarting).Retry(500*time.Millisecond)))
	if f.OK || f.Err.Detail("reason") != ReasonStarting || !f.Err.Retryable || f.Err.RetryAfterMs != 500 {
		t.Errorf("got %+v", f.Err)
	}
}

func TestAppendString_IsWhatTheEncoderWrites(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "plain", "\x00\x01\x1f\x7f", "\"\\/", "\b\f\n\r\t", "ü\u2027\u2028\u2029\u202a", "👩‍👩‍👧‍👦", "\xff a \xc3", "\ufffd", "<&>",
	} {
		want, err := Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		got := AppendString(nil, s)
		if string(got) != string(want) {
			t.Errorf("%q: got %s want %s", s, got, want)
		}
		if n := EncodedLen(s) + 2; n != len(want) {
			t.Errorf("%q: EncodedLen %d, encoded %d", s, n, len(want))
		}
	}
}

func TestAppendJSON_OfStreamPayloadsIsTheOrdinaryForm(t *testing.T) {
	t.Parallel()
	const odd = "a\"\\<ü\u2028\x00\xff"
	type (
		agent AgentEvent
		text  AssistantText
	)
	event := AgentEvent{RunID: odd, Seq: 3, Stream: odd, TS: -1, Data: json.RawMessage(`{"a":[1]}`)}
	fullEvent := event
	fullEvent.SessionKey, fullEvent.SessionID, fullEvent.AgentID, fullEvent.SpawnedBy, fullEvent.IsHeartbeat = odd, odd, odd, odd, true
	for _, c := range [][2]any{
		{event, agent(event)},
		{fullEvent, agent(fullEvent)},
		{AssistantText{}, text{}},
		{AssistantText{odd, odd, odd, true}, text{odd, odd, odd, true}},
	} {
		got, err := Marshal(c[0])
		if err != nil {
			t.Fatal(err)
		}
		want, err := Marshal(c[1])
		if err != nil || string(got) != string(want) {
			t.Errorf("%T\n got %s\nwant %s", c[0], got, want)
		}
	}
	for _, v := range []any{AgentEvent{}, ChatDelta{Message: &ChatMessage{}}} {
		if raw, err := Marshal(v); err != nil || !json.Valid(raw) {
			t.Errorf("%s, %v", raw, err)
		}
	}
}
