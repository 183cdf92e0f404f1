package rpc

import (
	"fmt"
	"strings"
	"testing"
)

// Loop 8: spellings, forms, and what is left of the message.
func TestCutDirectives_8(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ in, found, rest string }{
		{"/think high", "think=high", ""},
		{"/think:high", "think=high", ""},
		{"/THINK High", "think=high", ""},
		{"/thinking: low", "think=low", ""},
		{"/t off", "think=off", ""},
		{"/think x-high", "think=xhigh", ""},
		{"/think extra high please", "think=xhigh", "please"},
		{"/think highest", "think=high", ""},
		{"/think", "think?", ""},
		{"/think default", "think!", ""},
		{"/think banana", "think~banana", ""},
		{"/v on", "verbose=on", ""},
		{"/verbose full", "verbose=full", ""},
		{"/reason stream", "reasoning=stream", ""},
		{"/fast auto", "fast=auto", ""},
		{"/fast default", "fast!", ""},
		{"/model a/b", "model=a/b", ""},
		{"/model default", "model!", ""},
		{"/model", "model?", ""},
		{"/think high /fast on", "think=high fast=on", ""},
		{"/trace on", "trace=on", ""},
		{"/trace:off go on", "trace=off", "go on"},
		{"/trace loudly yes", "", "/trace loudly yes"},
		// Shortcuts take no word.
		{"/status", "status?", ""},
		{"please /STATUS do x", "status?", "please do x"},
		{"/help\nand /whoami", "help? whoami?", "\nand "},
		{"/think high /status do x", "think=high status?", "do x"},
		{"/commands  two", "commands?", " two"},
		{"/status/foo and/help", "", "/status/foo and/help"},
		{"what is /status? and /help.", "", "what is /status? and /help."},
		{"/status: fine", "", "/status: fine"},
		{strings.Repeat("/status ", 40) + "x", strings.TrimSpace(strings.Repeat("status? ", 32)), strings.Repeat("/status ", 8) + "x"},
		{"solve this /think high now", "think=high", "solve this now"},
		{"/think low two  spaces\nand lines", "think=low", "two  spaces\nand lines"},
		{"before\n/v:on\nafter", "verbose=on", "before\n\nafter"},
		{"/model a/b and answer", "model=a/b", "and answer"},
		// What is the user's text.
		{"/think about it", "", "/think about it"},
		{"what does /thinkhard mean", "", "what does /thinkhard mean"},
		{"see a/think high", "", "see a/think high"},
		{"/models are many", "", "/models are many"},
		{"plain", "", "plain"},
		{"what does /think", "", "what does /think"},
		{"cd /t\nand list it", "", "cd /t\nand list it"},
		{"ls /v /tmp", "", "ls /v /tmp"},
		{"is /fast /slow?", "", "is /fast /slow?"},
		{"/think /verbose on", "think? verbose=on", ""},
		{"/think /verbose on: what does that do?", "", "/think /verbose on: what does that do?"},
		{"https://example.org/think high", "", "https://example.org/think high"},
		{"what does /model do?", "", "what does /model do?"},
		{"/model nobody", "model~nobody", ""},
		{strings.Repeat("/think low ", 40) + "x", strings.TrimSpace(strings.Repeat("think=low ", 32)), strings.Repeat("/think low ", 8) + "x"},
	} {
		found, rest := cutDirectives(row.in, func(word string) bool { return word == "a/b" })
		var got []string
		for _, s := range found {
			switch {
			case s.word == "":
				got = append(got, s.name+"?")
			case s.clear:
				got = append(got, s.name+"!")
			case !s.known:
				got = append(got, s.name+"~"+s.word)
			default:
				got = append(got, fmt.Sprintf("%s=%s", s.name, s.level))
			}
		}
		if strings.Join(got, " ") != row.found || rest != row.rest {
			t.Errorf("%q: %q, rest %q; want %q, rest %q", row.in, strings.Join(got, " "), rest, row.found, row.rest)
		}
	}
}
