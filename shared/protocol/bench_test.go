package protocol

import (
	"os"
	"strings"
	"testing"
)

func BenchmarkDecodeRequest(b *testing.B) {
	raw, err := os.ReadFile("testdata/agent.json")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := DecodeRequest(raw)
		if err != nil {
			b.Fatal(err)
		}
		if _, e := Decode[AgentParams](r.Method, r.Params); e != nil {
			b.Fatal(e)
		}
	}
}

func BenchmarkDecodeRequest200KB(b *testing.B) {
	raw, err := AppendRequest(nil, "1", "agent", AgentParams{Message: strings.Repeat("lorem ipsum\n", 17000), IdempotencyKey: "k"})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := DecodeRequest(raw)
		if err != nil {
			b.Fatal(err)
		}
		if _, e := Decode[AgentParams](r.Method, r.Params); e != nil {
			b.Fatal(e)
		}
	}
}

func BenchmarkAppendEvent(b *testing.B) {
	e := ChatDelta{
		Chat:      Chat{RunID: "ca73e858-c7b8", SessionKey: "agent:main:t1", AgentID: "main", Seq: 9, State: ChatStateDelta},
		DeltaText: " and more", Message: AssistantMessage(strings.Repeat("some words ", 40), 1),
	}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if dst, err = AppendEvent(dst[:0], EventChat, e); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(dst)))
}
