package openai

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"laneway/shared/model"
)

const wideChunk = `{"id":"chatcmpl-abc","object":"chat.completion.chunk","created":1790000000,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" word of twenty char"},"logprobs":null,"finish_reason":null}]}`

// BenchmarkDecode5000Deltas is the adapter's own work without the network: the
// budget for 5,000 deltas is 80 ms for everything.
func BenchmarkDecode5000Deltas(b *testing.B) {
	body := strings.Repeat("data: "+wideChunk+"\n\n", 5000) + "data: [DONE]\n\n"
	p, err := New(Config{BaseURL: "http://127.0.0.1:1/v1"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		d := &decoder{provider: p, ctx: context.Background(), yield: func(model.Part, error) bool { n++; return true }}
		d.events(strings.NewReader(body))
		if !d.end() || n != 5001 {
			b.Fatalf("%d parts", n)
		}
	}
}

// BenchmarkStream5000Deltas is the same through a connection.
func BenchmarkStream5000Deltas(b *testing.B) {
	body := []byte(strings.Repeat("data: "+wideChunk+"\n\n", 5000) + "data: [DONE]\n\n")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(body)
	}))
	defer srv.Close()
	p, err := New(Config{BaseURL: srv.URL, HTTPClient: srv.Client()})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range p.Stream(b.Context(), ask("hi")) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkFirstDelta reports how long after the server has sent a delta the
// caller has it.
func BenchmarkFirstDelta(b *testing.B) {
	sent := make(chan time.Time, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		sent <- time.Now()
		_, _ = w.Write([]byte("data: " + wideChunk + "\n\n"))
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		_, _ = w.Write([]byte("data: [DONE]\n\n"))
	}))
	defer srv.Close()
	p, err := New(Config{BaseURL: srv.URL, HTTPClient: srv.Client()})
	if err != nil {
		b.Fatal(err)
	}
	var total time.Duration
	for b.Loop() {
		for part, err := range p.Stream(b.Context(), ask("hi")) {
			if err != nil {
				b.Fatal(err)
			}
			if part.Text != "" {
				total += time.Since(<-sent)
			}
		}
	}
	b.ReportMetric(float64(total.Microseconds())/float64(b.N), "µs/first-delta")
}

// BenchmarkEncodeHistory is the cost of a request with 400 messages before it.
func BenchmarkEncodeHistory(b *testing.B) {
	p, err := New(Config{BaseURL: "http://127.0.0.1:1/v1"})
	if err != nil {
		b.Fatal(err)
	}
	r := ask("hi")
	for range 200 {
		r.Messages = append(r.Messages,
			model.Message{Role: model.User, Content: []model.Block{{Type: model.Text, Text: "hello there, how are you today and so on"}}},
			model.Message{Role: model.Assistant, Content: []model.Block{{Type: model.Text, Text: "I am fine thank you very much for asking"}}})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.encode(r); err != nil {
			b.Fatal(err)
		}
	}
}
