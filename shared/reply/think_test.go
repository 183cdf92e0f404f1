package reply_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"laneway/shared/reply"
)

func split(deltas ...string) (text, thinking string) {
	var s reply.ThinkSplitter
	for _, d := range deltas {
		t, th := s.Push(d)
		text, thinking = text+t, thinking+th
	}
	t, th := s.Flush()
	return text + t, thinking + th
}

func TestThinkingIsTakenOutOfTheAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, text, thinking string }{
		{"<think>hm</think>\n\nHello", "Hello", "hm"},
		{"\n<thinking>a < b</thinking> Hello", "Hello", "a < b"},
		{"<think>one</think><thought>two</thought>Hello", "Hello", "onetwo"},
		{"<think>never closed", "", "never closed"},
		{"<think></think>Hello", "Hello", ""},
		{"Hello <think>no</think>", "Hello <think>no</think>", ""},
		{"<thi", "<thi", ""},
		{"<THINK>İ hm</Think>Hello", "Hello", "İ hm"},
		{"<antthinking>hm</antthinking>Hello", "Hello", "hm"},
		{"<b>Hello", "<b>Hello", ""},
		{"  Hello", "  Hello", ""},
		{"<think>x</think>Use <think> in code", "Use <think> in code", "x"},
		{"", "", ""},
	} {
		if text, thinking := split(c.in); text != c.text || thinking != c.thinking {
			t.Errorf("%q: text %q, thinking %q", c.in, text, thinking)
		}
	}
}

func TestThinkingThatNeverEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, unclosed string }{
		{"<think> the answer", "the answer"},
		{"<think>", ""},
		{"<think>hm</think><think>more", ""},
		{"<think>hm</think>Hello", ""},
		{"Hello", ""},
	} {
		var s reply.ThinkSplitter
		for _, r := range c.in {
			s.Push(string(r))
		}
		s.Flush()
		if got := s.Unclosed(); got != c.unclosed {
			t.Errorf("%q: %q", c.in, got)
		}
	}
}

func TestThinkingIsTheSameForAnySplit(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{"<think>", "</think>", "<thinking>", "</thinking>", "<thi", "nk>", "<", "/", " ", "a", "é"})
	rapid.Check(t, func(t *rapid.T) {
		whole := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "")
		wantText, wantThinking := split(whole)
		var deltas []string
		for rest := []rune(whole); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			deltas, rest = append(deltas, string(rest[:n])), rest[n:]
		}
		if text, thinking := split(deltas...); text != wantText || thinking != wantThinking {
			t.Fatalf("%q as %q: text %q, want %q; thinking %q, want %q", whole, deltas, text, wantText, thinking, wantThinking)
		}
	})
}

func TestOrdinaryTextIsNotHeldBackByTheSplitter(t *testing.T) {
	t.Parallel()
	var s reply.ThinkSplitter
	for _, d := range []string{"H", "ello <", "think"} {
		if text, _ := s.Push(d); text != d {
			t.Errorf("%q came as %q", d, text)
		}
	}
}
