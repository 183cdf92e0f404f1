package claude

import "testing"

func TestThink(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		id, level string
		want      Thinking
	}{
		{"claude-sonnet-4-5", "", Thinking{}},
		{"claude-sonnet-4-5", "off", Thinking{}},
		{"claude-sonnet-5-5", "off", Thinking{}},
		{"claude-sonnet-5-5", "bogus", Thinking{}},
		{"claude-3-7-sonnet-latest", "low", Thinking{Budget: 2048}},
		{"claude-opus-4", "minimal", Thinking{Budget: 1024}},
		{"claude-opus-4-0", "minimal", Thinking{Budget: 1024}},
		{"claude-sonnet-4-20250514", "medium", Thinking{Budget: 8192}},
		{"claude-opus-4-1-20250805", "high", Thinking{Budget: 16384}},
		{"claude-haiku-4-5", "low", Thinking{Budget: 2048}},
		{"eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "low", Thinking{Budget: 2048}},
		{"claude-opus-4-6", "medium", Thinking{Effort: "medium"}},
		{"claude-opus-4-8", "minimal", Thinking{Effort: "low"}},
		{"global.anthropic.claude-opus-5-5", "high", Thinking{Effort: "high"}},
		{"claude-next", "low", Thinking{Effort: "low"}},
	} {
		if got := Think(row.id, row.level); got != row.want {
			t.Errorf("%s, %s: %+v, want %+v", row.id, row.level, got, row.want)
		}
	}
}

func TestMaxTokensLeavesRoom(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		t           Thinking
		asked, want int
	}{
		{Thinking{}, 100, 100},
		{Thinking{Effort: "high"}, 100, 100},
		{Thinking{Budget: 1024}, 100, 5120},
		{Thinking{Budget: 1024}, 9000, 9000},
	} {
		if got := row.t.MaxTokens(row.asked); got != row.want {
			t.Errorf("%+v of %d: %d, want %d", row.t, row.asked, got, row.want)
		}
	}
}

func TestWhatIsKnownOfIDs(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		id       string
		is, keep bool
	}{
		{"claude-sonnet-5-5", true, true},
		{"us.anthropic.claude-sonnet-4-20250514-v1:0", true, true},
		{"arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-4-1", true, true},
		{"anthropic.claude-3-7-sonnet-20250219-v1:0", true, true},
		{"anthropic.claude-3-5-haiku-20241022-v1:0", true, true},
		{"anthropic.claude-3-5-sonnet-20240620-v1:0", true, false},
		{"anthropic.claude-3-haiku-20240307-v1:0", true, false},
		{"amazon.nova-pro-v1:0", false, false},
		{"meta.llama3", false, false},
	} {
		if Is(row.id) != row.is || KeepsPrompts(row.id) != row.keep {
			t.Errorf("%s: is %v, keeps %v", row.id, Is(row.id), KeepsPrompts(row.id))
		}
	}
}
