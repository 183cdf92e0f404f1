package run_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"laneway/shared/model"
	"laneway/shared/protocol"
	"laneway/shared/run"
)

// asJSON is v as a client gets it.
func asJSON(t *testing.T, v any) map[string]any {
	t.Helper()
	b, ok := v.([]byte)
	if !ok {
		var err error
		if b, err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return m
}

func parse(t *testing.T, s string) map[string]any {
	t.Helper()
	return asJSON(t, []byte(s))
}

// endings are the ways in which a run can end, with both of its forms on the wire:
// the reply of agent.wait (spec: runtime 1.8, 1.9) and the second one of agent (1.6).
var endings = map[string]struct {
	out         run.Outcome
	wait, final string
}{
	"ok": {
		run.Outcome{Kind: run.OK, StopReason: "stop", Text: "hello", Payloads: []run.Payload{{Text: "hello"}}, DurationMs: 7},
		`{"runId":"r","status":"ok","startedAt":20,"endedAt":30,"stopReason":"stop","livenessState":"working","terminalReply":{"disposition":"visible","text":"hello"}}`,
		`{"type":"res","id":"q","ok":true,"payload":{"runId":"r","status":"ok","summary":"completed","result":{"payloads":[{"text":"hello","mediaUrl":null}],"meta":{"durationMs":7}}}}`,
	},
	"aborted by its caller": {
		run.Outcome{Kind: run.Aborted, StopReason: "rpc"},
		`{"runId":"r","status":"error","startedAt":20,"endedAt":30,"stopReason":"rpc","error":"aborted"}`,
		`{"type":"res","id":"q","ok":true,"payload":{"runId":"r","status":"timeout","summary":"aborted","stopReason":"rpc"}}`,
	},
	"aborted in the queue": {
		run.Outcome{Kind: run.Aborted, StopReason: "rpc", TimeoutPhase: "queue"},
		`{"runId":"r","status":"error","startedAt":20,"endedAt":30,"stopReason":"rpc","error":"aborted","timeoutPhase":"queue","providerStarted":false}`,
		`{"type":"res","id":"q","ok":true,"payload":{"runId":"r","status":"timeout","summary":"aborted","stopReason":"rpc","timeoutPhase":"queue","providerStarted":false}}`,
	},
	"out of time at the provider": {
		run.Outcome{
			Kind: run.Timeout, StopReason: "timeout", TimeoutPhase: "provider", ProviderStarted: true, Error: "too late",
			Payloads: []run.Payload{{Text: "too late", IsError: true}},
		},
		`{"runId":"r","status":"timeout","startedAt":20,"endedAt":30,"stopReason":"timeout","error":"too late","timeoutPhase":"provider","providerStarted":true}`,
		`{"type":"res","id":"q","ok":true,"payload":{"runId":"r","status":"timeout","summary":"aborted","stopReason":"timeout","timeoutPhase":"provider","providerStarted":true,"result":{"payloads":[{"text":"too late","mediaUrl":null,"isError":true}],"meta":{"durationMs":0}}}}`,
	},
	"broken": {
		run.Outcome{Kind: run.Failed, StopReason: "error", Error: "no key", ErrorKind: "auth"},
		`{"runId":"r","status":"error","startedAt":20,"endedAt":30,"stopReason":"auth","error":"no key","livenessState":"blocked"}`,
		`{"type":"res","id":"q","ok":false,"payload":{"runId":"r","status":"error","summary":"no key"}}`,
	},
	"broken with something to show": {
		run.Outcome{Kind: run.Failed, StopReason: "error", Error: "no key", ErrorKind: "auth", Payloads: []run.Payload{{Text: "sorry", IsError: true}}},
		`{"runId":"r","status":"error","startedAt":20,"endedAt":30,"stopReason":"auth","error":"no key","livenessState":"blocked"}`,
		`{"type":"res","id":"q","ok":true,"payload":{"runId":"r","status":"error","summary":"failed","result":{"payloads":[{"text":"sorry","mediaUrl":null,"isError":true}],"meta":{"durationMs":0}}}}`,
	},
}

func ended(o run.Outcome) run.Status {
	return run.Status{RunID: "r", AcceptedAt: 10, StartedAt: 20, EndedAt: 30, Outcome: &o}
}

func TestSnapshot_OfEveryEnding(t *testing.T) {
	t.Parallel()
	for name, c := range endings {
		st := ended(c.out)
		if diff := cmp.Diff(parse(t, c.wait), asJSON(t, st.Snapshot())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFinal_OfEveryEnding(t *testing.T) {
	t.Parallel()
	for name, c := range endings {
		st := ended(c.out)
		b, err := st.AppendFinal("q", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		got := asJSON(t, b)
		if e, ok := got["error"].(map[string]any); ok {
			if e["code"] != "UNAVAILABLE" || e["message"] != c.out.Error {
				t.Errorf("%s: error %v", name, e)
			}
			delete(got, "error")
		} else if got["ok"] != true {
			t.Errorf("%s: neither ok nor an error", name)
		}
		if diff := cmp.Diff(parse(t, c.final), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// F17: a run that was cut off is never ok, to nobody.

// TestLoop8_CardsComeFirst: what the gateway itself answered to the message is the first
// payload of every reply that has any, and part of what a wait tells.
func TestLoop8_CardsComeFirst(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		out   run.Outcome
		texts []string
		wait  string
	}{
		"an answer": {run.Outcome{Kind: run.OK, Text: "hello", Payloads: []run.Payload{{Text: "hello"}}}, []string{"card", "hello"}, "card\n\nhello"},
		"no answer": {run.Outcome{Kind: run.OK}, []string{"card"}, "card"},
		"stopped":   {run.Outcome{Kind: run.Aborted, StopReason: "rpc", TimeoutPhase: "queue"}, []string{"card"}, ""},
		"timed out": {run.Outcome{Kind: run.Timeout, Payloads: []run.Payload{{Text: "too late", IsError: true}}}, []string{"card", "too late"}, ""},
		"failed":    {run.Outcome{Kind: run.Failed, Payloads: []run.Payload{{Text: "broken", IsError: true}}}, []string{"card", "broken"}, ""},
	} {
		st := run.Status{Ref: run.RefOf("t", "r"), RunID: "r", Input: run.Input{Cards: "card"}, Outcome: &row.out}
		var got []string
		for i, p := range st.Final().Result.Payloads {
			got = append(got, p.Text)
			if p.IsStatusNotice != (i == 0) {
				t.Errorf("%s: payload %d: %+v", name, i, p)
			}
		}
		if diff := cmp.Diff(row.texts, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if w := st.Snapshot(); row.wait != "" && (w.TerminalReply == nil || w.TerminalReply.Text != row.wait) {
			t.Errorf("%s: a wait tells %+v", name, w.TerminalReply)
		}
		b, err := st.AppendFinal("q", 1<<20)
		if err != nil || !strings.Contains(string(b), `"text":"card"`) {
			t.Errorf("%s: %s, %v", name, b, err)
		}
	}
	long := run.Status{RunID: "r", Input: run.Input{Cards: "card"}, Outcome: &run.Outcome{Kind: run.OK, Payloads: []run.Payload{{Text: strings.Repeat("x", 4000)}}}}
	b, err := long.AppendFinal("q", 1000)
	if err != nil || len(b) > 1000 || !strings.Contains(string(b), `"card\n\nxxx`) {
		t.Errorf("%d bytes: %s, %v", len(b), b, err)
	}
}

func TestF17_ACutOffRunIsNeverOK(t *testing.T) {
	t.Parallel()
	for name, c := range endings {
		st := ended(c.out)
		b, err := st.AppendFinal("q", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		final, _ := asJSON(t, b)["payload"].(map[string]any)
		isOK := c.out.Kind == run.OK
		if (st.Snapshot().Status == "ok") != isOK || (final["status"] == "ok") != isOK {
			t.Errorf("%s: wait says %s, agent says %v", name, st.Snapshot().Status, final["status"])
		}
	}
}

// Both times are always there: a run that never began has the time of its acceptance.
func TestSnapshot_HasBothTimes(t *testing.T) {
	t.Parallel()
	st := ended(run.Outcome{Kind: run.Aborted, StopReason: "rpc", TimeoutPhase: "queue"})
	st.StartedAt = 0
	if w := st.Snapshot(); w.StartedAt != 10 || w.EndedAt != 30 {
		t.Errorf("%+v", w)
	}
}

func TestSnapshot_SaysWhatBecameOfTheMessage(t *testing.T) {
	t.Parallel()
	st := ended(run.Outcome{Kind: run.OK})
	st.Disposition = run.Disposition{Kind: "started"}
	if d := st.Snapshot().Disposition; d == nil || d.Kind != "started" {
		t.Errorf("%+v", d)
	}
	if st.Final().Disposition != nil {
		t.Error("what every reply of agent would say needs no word")
	}
	st.Disposition = run.Disposition{Kind: "steered", RunID: "other", Step: 3}
	if d := st.Snapshot().Disposition; d == nil || d.Kind != "steered" || d.RunID != "other" || d.Step != 3 {
		t.Errorf("%+v", d)
	}
}

// A frame keeps its limit: the text is cut between characters, and the frame says so.
func TestF30f_ALongReplyIsCutToTheFrame(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"ascii": strings.Repeat("x", 300<<10), "umlauts": strings.Repeat("ü", 200<<10), "escapes": strings.Repeat("\"\n\x01", 100<<10),
		"emoji": strings.Repeat("👩‍🚀", 30<<10),
	} {
		const limit = 120 << 10
		st := ended(run.Outcome{Kind: run.OK, Payloads: []run.Payload{{Text: text}, {Text: "more"}}})
		b, err := st.AppendFinal("q", limit)
		if err != nil || len(b) > limit || len(b) < limit*9/10 {
			t.Fatalf("%s: %d bytes, %v", name, len(b), err)
		}
		var f struct {
			Payload struct {
				Result struct {
					Payloads []struct{ Text string }
					Meta     struct{ Truncated bool }
				}
			}
		}
		if err := json.Unmarshal(b, &f); err != nil {
			t.Fatal(err)
		}
		r := f.Payload.Result
		if !r.Meta.Truncated || len(r.Payloads) != 1 || !utf8.ValidString(r.Payloads[0].Text) || strings.ContainsRune(r.Payloads[0].Text, utf8.RuneError) {
			t.Errorf("%s: truncated %v, %d payloads", name, r.Meta.Truncated, len(r.Payloads))
		}
	}
}

func TestFinal_CarriesModelAndUsage(t *testing.T) {
	t.Parallel()
	st := ended(run.Outcome{Kind: run.OK, Provider: "p", Model: "m", Usage: &model.Usage{Input: 5, Output: 2, CacheRead: 3}})
	st.SessionID = "sid"
	got := asJSON(t, st.Final())
	meta := got["result"].(map[string]any)["meta"].(map[string]any)["agentMeta"]
	want := parse(t, `{"sessionId":"sid","provider":"p","model":"m","usage":{"input":5,"output":2,"cacheRead":3,"totalTokens":10}}`)
	if diff := cmp.Diff(want, meta); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestF30f_WhatStandsBesideTheReplyIsTheFirstToGo: where not all fits, the answer does.
func TestF30f_WhatStandsBesideTheReplyIsTheFirstToGo(t *testing.T) {
	t.Parallel()
	const limit = 128 << 10
	answer := strings.Repeat("a", 100<<10)
	st := run.Status{RunID: "r", Input: run.Input{Cards: "card"}, Outcome: &run.Outcome{Kind: run.OK, Payloads: []run.Payload{
		{Text: "notice", Notice: true},
		{Text: strings.Repeat("t", 60<<10), Summary: true},
		{Text: strings.Repeat("r", 60<<10), Reasoning: true},
		{Text: answer},
	}}}
	for _, row := range []struct {
		limit int
		want  []string // the first letters of what is there
		cut   bool
	}{
		{1 << 20, []string{"card", "noti", "tttt", "rrrr", "aaaa"}, false},
		{limit, []string{"card", "noti", "aaaa"}, true},
		{50 << 10, []string{"card"}, true}, // one text, cut
	} {
		b, err := st.AppendFinal("q", row.limit)
		if err != nil || len(b) > row.limit {
			t.Fatalf("%d bytes of %d, %v", len(b), row.limit, err)
		}
		var f struct{ Payload protocol.Final }
		if err := json.Unmarshal(b, &f); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range f.Payload.Result.Payloads {
			got = append(got, p.Text[:4])
		}
		if !slices.Equal(got, row.want) || f.Payload.Result.Meta.Truncated != row.cut {
			t.Errorf("within %d: %q, truncated %v; want %q, %v", row.limit, got, f.Payload.Result.Meta.Truncated, row.want, row.cut)
		}
		if last := f.Payload.Result.Payloads[len(got)-1].Text; row.limit >= limit && last != answer {
			t.Errorf("within %d: the answer has %d bytes", row.limit, len(last))
		}
	}
}
