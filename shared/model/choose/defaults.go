package choose

import "strings"

// The models that are used when only a provider is configured. Each provider's
// middle one: good at tools, not the dearest. Bedrock has none: what an account
// may use there depends on its region and its agreements.
const (
	DefaultAnthropic = "claude-sonnet-5-5"
	DefaultOpenAI    = "gpt-5.4"
)

// windows are the context windows in tokens of models whose ids begin so, the
// longer beginnings first. What is not here is 0, unknown.
var windows = []struct {
	prefix string
	tokens int
}{
	{"claude-", 200_000},
	{"gpt-5", 400_000},
	{"gpt-4.1", 1_047_576},
	{"gpt-4o", 128_000},
	{"o3", 200_000},
	{"o4", 200_000},
}

// ContextWindow of a model by its id; 0: unknown.
func ContextWindow(id string) int {
	// Bedrock's ids begin with a region and a maker: eu.anthropic.claude-…
	if i := strings.LastIndex(id, "anthropic."); i >= 0 {
		id = id[i+len("anthropic."):]
	}
	for _, w := range windows {
		if strings.HasPrefix(id, w.prefix) {
			return w.tokens
		}
	}
	return 0
}
