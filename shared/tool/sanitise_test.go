package tool_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"laneway/shared/chars"
	"laneway/shared/model"
	"laneway/shared/tool"
)

func TestTranscriptCapFollowsTheWindow(t *testing.T) {
	t.Parallel()
	for window, want := range map[int]int{
		0: 16_000, 99_999: 16_000, 100_000: 32_000, 199_999: 32_000, 200_000: 64_000, 1_000_000: 64_000,
		8192: 9830, 1000: 2000, 1: 2000,
	} {
		if got := tool.TranscriptCap(window); got != want {
			t.Errorf("window %d: %d, want %d", window, got, want)
		}
	}
}

func TestCapResultKeepsTheLimitAndTellsTheRest(t *testing.T) {
	t.Parallel()
	r := tool.TextResult(strings.Repeat("x", 5000))
	got := text(tool.CapResult(r, 2000))
	if chars.Count(got) > 2000 || !strings.HasSuffix(got, "more characters truncated; rerun with narrower args if needed]") {
		t.Errorf("%d chars, %q", chars.Count(got), got[len(got)-100:])
	}
	kept := strings.Count(got, "x")
	if !strings.Contains(got, "[... "+itoa(5000-kept+1)+" more") && !strings.Contains(got, "[... "+itoa(5000-kept)+" more") {
		t.Errorf("kept %d, but: %q", kept, got[len(got)-100:])
	}
	if text(r) != strings.Repeat("x", 5000) {
		t.Error("the given result was changed")
	}
}

func itoa(n int) string {
	raw, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestCapResultForAnyBlocks(t *testing.T) {
	t.Parallel()
	block := rapid.Custom(func(t *rapid.T) model.Block {
		if rapid.Bool().Draw(t, "image") {
			return model.Block{Type: model.Image, MimeType: "image/png", Data: []byte{1}}
		}
		piece := rapid.SampledFrom([]string{"x", "😀", "é\n", "\xff"}).Draw(t, "piece")
		return model.Block{Type: model.Text, Text: strings.Repeat(piece, rapid.IntRange(0, 3000).Draw(t, "times"))}
	})
	rapid.Check(t, func(t *rapid.T) {
		r := tool.Result{Content: rapid.SliceOfN(block, 1, 5).Draw(t, "blocks")}
		limit := rapid.IntRange(200, 4000).Draw(t, "limit")
		got := tool.CapResult(r, limit)
		total, images := 0, 0
		for _, b := range got.Content {
			if !utf8.ValidString(b.Text) {
				t.Fatalf("not UTF-8: %q", b.Text)
			}
			total += chars.Count(b.Text)
			if b.Type == model.Image {
				images++
			}
		}
		for _, b := range r.Content {
			if b.Type == model.Image {
				images--
			}
		}
		if total > limit || images != 0 {
			t.Fatalf("%d chars of %d, images %+d", total, limit, images)
		}
	})
}

func TestEventsCarryBoundedTextAndNoImageBytes(t *testing.T) {
	t.Parallel()
	r := tool.Result{Content: []model.Block{
		{Type: model.Text, Text: strings.Repeat("é", 9000)},
		{Type: model.Image, MimeType: "image/png", Data: make([]byte, 321)},
		{Type: model.Text, Text: "bin\x00ary"},
		{Type: model.Text, Text: "see data:image/png;base64," + strings.Repeat("QUJD", 50) + " there"},
	}}
	e := tool.ForEvent(r)
	if n := chars.Count(e.Content[0].Text); n != 8000 || !strings.HasSuffix(e.Content[0].Text, "\n…(truncated)…") {
		t.Errorf("%d chars", n)
	}
	raw, err := json.Marshal(e.Content[1])
	if err != nil || string(raw) != `{"type":"image","mimeType":"image/png","bytes":321,"omitted":true}` {
		t.Errorf("%s, %v", raw, err)
	}
	if e.Content[2].Text != "[binary omitted: 7 chars]" {
		t.Errorf("%q", e.Content[2].Text)
	}
	if e.Content[3].Text != "see [inline data URI: 222 chars] there" {
		t.Errorf("%q", e.Content[3].Text)
	}
	many := tool.Result{}
	for range 100 {
		many.Content = append(many.Content, r.Content[0])
	}
	if raw, err := json.Marshal(tool.ForEvent(many)); err != nil || len(raw) > 100_000 {
		t.Errorf("%d bytes in one event, %v", len(raw), err)
	}
}

func TestErrorLineIsTheFirstLine(t *testing.T) {
	t.Parallel()
	if got := tool.ErrorLine(tool.ErrorResult("disk is full\nstack")); got != "disk is full" {
		t.Errorf("%q", got)
	}
	if got := tool.ErrorLine(tool.ErrorResult(strings.Repeat("x", 1000))); chars.Count(got) != 400 {
		t.Errorf("%d chars", chars.Count(got))
	}
	if got := tool.ErrorLine(tool.TextResult("fine")); got != "" {
		t.Errorf("%q", got)
	}
}

func TestNoSecretIsShown(t *testing.T) {
	t.Parallel()
	const secret = "Zq8fK2mP0sT7vX1y" // stands for the part nobody may see
	for name, given := range map[string]string{
		"OpenAI key":     "key is sk-proj-" + secret + secret,
		"GitHub token":   "ghp_" + secret + secret,
		"Slack token":    "xoxb-1234-" + secret,
		"JWT":            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + secret,
		"bearer":         "curl -H 'Authorization: Bearer " + secret + "' http://x",
		"header":         "X-Api-Key: " + secret + "\nok",
		"cookie":         "Cookie: sid=" + secret + "; a=b",
		"URL":            "postgres://user:" + secret + "@host/db",
		"assignment":     "export AWS_SECRET_ACCESS_KEY=" + secret + " && run",
		"quoted":         `password = "` + secret + ` with blanks"`,
		"JSON text":      `{"api_key": "` + secret + `"}`,
		"private key":    "-----BEGIN RSA PRIVATE KEY-----\n" + secret + "\n-----END RSA PRIVATE KEY-----\n",
		"unfinished key": "-----BEGIN PRIVATE KEY-----\n" + secret,
		"at the cut":     strings.Repeat("x ", 3990) + "token=" + secret,
	} {
		shown := tool.ForEvent(tool.TextResult(given)).Content[0].Text
		if strings.Contains(shown, secret[:8]) {
			t.Errorf("%s: %s", name, shown[max(0, len(shown)-200):])
		}
		raw, err := json.Marshal(map[string]any{"command": given})
		if err != nil {
			t.Fatal(err)
		}
		if args := tool.ArgsForEvent(raw); strings.Contains(string(args), secret[:8]) {
			t.Errorf("%s in arguments: %.200s", name, args)
		}
	}
	args := tool.ArgsForEvent(json.RawMessage(`{"env":{"DB_PASSWORD":"` + secret + `","GITHUB_PAT":"` + secret + `","LANG":"C"},"clientSecret":["` + secret + `"],"credentials":{"user":"` + secret + `"},"maxTokens":5}`))
	if strings.Contains(string(args), secret) || !strings.Contains(string(args), `"LANG":"C"`) || !strings.Contains(string(args), `"maxTokens":5`) {
		t.Errorf("%s", args)
	}
}

func TestOrdinaryTextIsShownAsItIs(t *testing.T) {
	t.Parallel()
	for _, given := range []string{
		"max_tokens: 4096 and 12 tokens", "the task-based approach", "https://example.com/a:b@c", "see session_key handling", "",
		"a basic idea", "\x1b[31mred\x1b[0m",
	} {
		if shown := tool.RedactText(given); shown != given {
			t.Errorf("%q became %q", given, shown)
		}
	}
}

func TestArgumentsInEventsAreAlwaysJSONAndBounded(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("y", 20_000)
	for _, args := range []string{`{"a":"` + big + `"}`, `{"a":"` + strings.Repeat("y", 7000) + `"}`, `not json "`, ``, `{"a":[` + strings.Repeat(`"zzzzzzzzzz",`, 9000) + `1]}`, strings.Repeat(`{"a":`, 50) + `1` + strings.Repeat(`}`, 50)} {
		got := tool.ArgsForEvent(json.RawMessage(args))
		if !json.Valid(got) || len(got) > 32_768 {
			t.Errorf("%.60s: %d bytes, %.60s", args, len(got), got)
		}
	}
}

func TestDetailsOverTheirSizeBecomeASummary(t *testing.T) {
	t.Parallel()
	small := map[string]any{"status": "ok", "n": 3.0, "apiToken": "abc"}
	got := tool.PersistDetails(small)
	if got["status"] != "ok" || got["n"] != 3.0 || got["apiToken"] != "***" || small["apiToken"] != "abc" {
		t.Errorf("%v, given %v", got, small)
	}
	large := map[string]any{"status": "failed", "exitCode": 2}
	for i := range 60 {
		large["key"+itoa(i)] = strings.Repeat("x", 1900)
	}
	got = tool.PersistDetails(large)
	raw, err := json.Marshal(got)
	if err != nil || len(raw) > 8192 {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	names, _ := got["originalDetailKeys"].([]string)
	if got["persistedDetailsTruncated"] != true || got["originalDetailsBytes"].(int) < 100_000 || len(names) != 40 || got["status"] != "failed" {
		t.Errorf("%v", got)
	}
	if tool.PersistDetails(nil) != nil {
		t.Error("nothing became something")
	}
	if got := tool.PersistDetails(map[string]any{"bad": func() {}}); got["persistedDetailsTruncated"] != true {
		t.Errorf("%v", got)
	}
}
