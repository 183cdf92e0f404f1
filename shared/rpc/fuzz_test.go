package rpc_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"laneway/shared/protocol"
	"laneway/shared/rpc"
	"laneway/shared/wiring"
)

// FuzzServe: whatever bytes come in, on a new connection and on one that is ready,
// nothing panics, and every answer is one valid frame under the limit, with an id,
// and an error that has a code and a message.
func FuzzServe(f *testing.F) {
	for _, s := range []string{
		``, `x`, `null`, `[]`, `{}`, `{"type":"req"}`, `{"type":"req","id":"","method":"health"}`, "\xff\xfe", `{"type":"req","id":"1","method":"health"`,
		`{"type":"req","id":"1","method":"health","params":{}}`,
		`{"type":"req","id":"1","method":"connect","params":{"minProtocol":4,"maxProtocol":4,"client":{"id":"a","version":"1","platform":"l","mode":"cli"},"auth":{"token":"x"}}}`,
		`{"type":"req","id":"1","method":"agent","params":{"message":"m","idempotencyKey":"k","sessionKey":"agent:main:x"}}`,
		`{"type":"req","id":"1","method":"agent","params":{"message":"/new","idempotencyKey":"k2"}}`,
		`{"type":"req","id":"1","method":"agent.wait","params":{"runId":"k","timeoutMs":0}}`,
		`{"type":"req","id":"1","method":"chat.send","params":{"message":"stop","idempotencyKey":"k3","sessionKey":"x"}}`,
		`{"type":"req","id":"1","method":"chat.send","params":{"message":"m","idempotencyKey":"k4","sessionKey":"x","queueMode":"steer"}}`,
		`{"type":"req","id":"1","method":"chat.abort","params":{"sessionKey":"x","runId":"k"}}`,
		`{"type":"req","id":"1","method":"chat.history","params":{"sessionKey":"x","cursor":"0.0.x","offset":9007199254740991}}`,
		`{"type":"req","id":"1","method":"chat.inject","params":{"sessionKey":"x","message":"m"}}`,
		`{"type":"req","id":"1","method":"sessions.list","params":{"limit":9007199254740991,"offset":9007199254740991,"activeMinutes":9007199254740991}}`,
		`{"type":"req","id":"1","method":"sessions.create","params":{"message":"m","idempotencyKey":"k5"}}`,
		`{"type":"req","id":"1","method":"sessions.patch","params":{"key":"x","label":null,"queueCap":1}}`,
		`{"type":"req","id":"1","method":"sessions.resolve","params":{"shortId":"x"}}`,
		`{"type":"req","id":"1","method":"sessions.preview","params":{"keys":["x","agent::",""],"limit":9007199254740991}}`,
		`{"type":"req","id":"1","method":"sessions.reset","params":{"key":"x"}}`,
		`{"type":"req","id":"1","method":"sessions.delete","params":{"key":"x"}}`,
		`{"type":"req","id":"1","method":"sessions.messages.subscribe","params":{"key":"x"}}`,
		`{"type":"req","id":"1","method":"no.such","params":1}`,
	} {
		f.Add([]byte(s))
	}
	w := setup(f, noRunner, settings(func(s *wiring.Settings) { s.BusyWait = 10 * time.Millisecond }))
	ready := w.plug()
	must(f, w.gw.Opened(context.Background(), ready.id, ""))
	serve := func(tb testing.TB, id string, body []byte) {
		tb.Helper()
		w.gw.Serve(context.Background(), &rpc.Frame{
			ConnectionID: id, Body: body, At: 1,
			Send:    func(frame []byte) { checkFrame(tb, body, frame) },
			Closing: func(int, string) {},
		})
	}
	body, err := protocol.AppendRequest(nil, "hello", "connect", hello(w.secret, nil))
	must(f, err)
	serve(f, ready.id, body)
	f.Fuzz(func(t *testing.T, body []byte) {
		serve(t, ready.id, body)
		fresh := w.plug()
		defer fresh.gone()
		must(t, w.gw.Opened(context.Background(), fresh.id, ""))
		serve(t, fresh.id, body)
		must(t, w.gw.Closed(context.Background(), fresh.id))
	})
}

func checkFrame(tb testing.TB, in, frame []byte) {
	tb.Helper()
	var got struct {
		Type    string          `json:"type"`
		ID      string          `json:"id"`
		OK      *bool           `json:"ok"`
		Event   string          `json:"event"`
		Payload json.RawMessage `json:"payload"`
		Error   *protocol.Error `json:"error"`
	}
	switch err := json.Unmarshal(frame, &got); {
	case err != nil || len(frame) > protocol.MaxFrameOut:
		tb.Errorf("%q is answered with %d bytes, %v: %.300s", in, len(frame), err, frame)
	case got.Type == "event" && got.Event != "":
	case got.Type != "res" || got.ID == "" || got.OK == nil:
		tb.Errorf("%q is answered with %s", in, frame)
	case !*got.OK && (got.Error == nil || got.Error.Code == "" || got.Error.Message == ""):
		tb.Errorf("%q is answered with %s", in, frame)
	}
}
