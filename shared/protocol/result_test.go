package protocol

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestResults_OptionalMembersAreAbsent(t *testing.T) {
	t.Parallel()
	yes := true
	for _, c := range []struct {
		v    any
		want string
	}{
		{NewAccepted("K", "agent:main:t1", "main", 5), `{"runId":"K","sessionKey":"agent:main:t1","agentId":"main","status":"accepted","acceptedAt":5}`},
		{FinalOK("K", Result{Payloads: []Payload{{Text: "<hi>"}}}), `{"runId":"K","status":"ok","summary":"completed","result":{"payloads":[{"text":"<hi>","mediaUrl":null}],"meta":{"durationMs":0}}}`},
		{FinalOK("K", Result{}), `{"runId":"K","status":"ok","summary":"completed","result":{"payloads":[],"meta":{"durationMs":0}}}`},
		{FinalFailed("K", Result{Payloads: []Payload{{Text: "e", IsError: true}}}), `{"runId":"K","status":"error","summary":"failed","result":{"payloads":[{"text":"e","mediaUrl":null,"isError":true}],"meta":{"durationMs":0}}}`},
		{FinalAborted("K", StopRPC, "", false, nil), `{"runId":"K","status":"timeout","summary":"aborted","stopReason":"rpc"}`},
		{FinalAborted("K", "", PhaseQueue, false, nil), `{"runId":"K","status":"timeout","summary":"aborted","timeoutPhase":"queue","providerStarted":false}`},
		{FinalAborted("K", StopTimeout, PhaseProvider, true, &Result{}), `{"runId":"K","status":"timeout","summary":"aborted","stopReason":"timeout","timeoutPhase":"provider","providerStarted":true,"result":{"payloads":[],"meta":{"durationMs":0}}}`},
		{FinalThrown("K", "no"), `{"runId":"K","status":"error","summary":"no"}`},
		{WaitExpired("K"), `{"runId":"K","status":"timeout"}`},
		{WaitQueued("K"), `{"runId":"K","status":"pending","timeoutPhase":"queue","providerStarted":false}`},
		{Wait{RunID: "K", Status: StatusError, EndedAt: 9, Error: "aborted", StopReason: StopRPC, ProviderStarted: &yes}, `{"runId":"K","status":"error","endedAt":9,"error":"aborted","stopReason":"rpc","providerStarted":true}`},
		{ChatSent{RunID: "K", Status: StatusStarted}, `{"runId":"K","status":"started"}`},
		{NewChatAborted(), `{"ok":true,"aborted":false,"runIds":[]}`},
		{NewChatAborted("a"), `{"ok":true,"aborted":true,"runIds":["a"]}`},
		{SessionResolved{}, `{"ok":false}`},
		{SessionDescribed{}, `{"session":null}`},
		{SessionAborted{OK: true, Status: "aborted"}, `{"ok":true,"abortedRunId":null,"status":"aborted"}`},
		{SessionRow{Key: "k", Kind: "direct"}, `{"key":"k","kind":"direct","updatedAt":null,"hasActiveRun":false,"activeRunIds":[],"totalTokensFresh":false}`},
		{Subscribed{Subscribed: true}, `{"subscribed":true}`},
		{ContentPart{Type: "text"}, `{"type":"text","text":""}`},
		{ContentPart{Type: "toolCall", ID: "c", Name: "read", Arguments: json.RawMessage(`{"path":"<a>"}`)}, `{"type":"toolCall","id":"c","name":"read","arguments":{"path":"<a>"}}`},
		{
			HistoryRow{Role: "user", Content: StringContent("a\"b"), Timestamp: 1, IdempotencyKey: UserRowKey("K"), Openclaw: RowMark{ID: "i", Seq: 1, RunID: "K"}},
			`{"role":"user","content":"a\"b","timestamp":1,"idempotencyKey":"K:user","__openclaw":{"id":"i","seq":1,"runId":"K"}}`,
		},
		{
			HistoryRow{Role: "assistant", Content: TextContent("<x>"), OpenclawAbort: &AbortMark{Aborted: true, Origin: StopRPC, RunID: "K"}},
			`{"role":"assistant","content":[{"type":"text","text":"<x>"}],"timestamp":0,"openclawAbort":{"aborted":true,"origin":"rpc","runId":"K"},"__openclaw":{"id":"","seq":0}}`,
		},
		{
			ChatDelta{Chat: Chat{RunID: "K", SessionKey: "s", Seq: 2, State: ChatStateDelta}, Message: AssistantMessage("", 1)},
			`{"runId":"K","sessionKey":"s","seq":2,"state":"delta","deltaText":"","message":{"role":"assistant","content":[{"type":"text","text":""}],"timestamp":1}}`,
		},
		{ChatFinal{Chat: Chat{RunID: "K", SessionKey: "s", Seq: 2, State: ChatStateFinal}}, `{"runId":"K","sessionKey":"s","seq":2,"state":"final"}`},
		{
			AgentEvent{RunID: "K", Seq: 1, Stream: StreamAssistant, TS: 2, Data: json.RawMessage(`{"text":"<a>"}`)},
			`{"runId":"K","seq":1,"stream":"assistant","ts":2,"data":{"text":"<a>"}}`,
		},
	} {
		got, err := Marshal(c.v)
		if err != nil || string(got) != c.want {
			t.Errorf("%T %v\n got %s\nwant %s", c.v, err, got, c.want)
		}
	}
}

func TestNewReply_IsCutAtRunes(t *testing.T) {
	t.Parallel()
	r := NewReply(strings.Repeat("ü", MaxReplyRunes+1))
	if r.Text != strings.Repeat("ü", MaxReplyRunes) || r.Disposition != "visible" {
		t.Errorf("%d bytes, %s", len(r.Text), r.Disposition)
	}
	if NewReply("").Disposition != "silent" {
		t.Error("an empty reply is visible")
	}
}

func TestChatErrorKind_IsOneOfTheSchema(t *testing.T) {
	t.Parallel()
	for class, want := range map[string]string{
		"timeout": "timeout", "rate_limit": "rate_limit", "overloaded": "rate_limit", "refusal": "refusal",
		"context_overflow": "context_length", "billing": "unknown", "": "unknown",
	} {
		if got := ChatErrorKind(class); got != want {
			t.Errorf("%s: got %s want %s", class, got, want)
		}
	}
}
