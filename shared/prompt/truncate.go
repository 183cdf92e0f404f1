package prompt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"laneway/shared/chars"
)

// leastContent is how much of a file must remain beside the long marks; below it
// the short mark is used.
const leastContent = 16

// truncate cuts the content of a file to at most limit chars, marks included. The
// start of a file matters most, its end next.
func truncate(name, content string, limit int) string {
	if chars.Fits(content, limit) {
		return content
	}
	if name == "AGENTS.md" {
		if cut, ok := truncatePolicy(name, content, limit); ok {
			return cut
		}
	}
	total := chars.Count(content)
	mark := func(head, tail int) string { return longMark(name, head, tail, total) }
	room := limit - chars.Count(mark(total, total)) // no mark with smaller numbers is longer
	if room < leastContent {
		mark = func(head, tail int) string { return fmt.Sprintf("[…truncated %d+%d/%d]", head, tail, total) }
		room = limit - chars.Count(mark(total, total))
	}
	if room < 0 {
		return chars.Head(content, limit)
	}
	tail := chars.Tail(content, room/4)
	head := chars.Head(content, room-room/4)
	return head + mark(chars.Count(head), chars.Count(tail)) + tail
}

func longMark(name string, head, tail, total int) string {
	return fmt.Sprintf("\n[...truncated, read %s for full content...]\n…(truncated %s: kept %d+%d chars of %d)…\n", name, name, head, tail, total)
}

const (
	digestTitle = "[Policy digest from AGENTS.md]\n"
	maxRule     = 240 // chars of one rule in the digest
)

var (
	listItem  = regexp.MustCompile(`^\s*(?:[-*+]|\d+[.)])\s+\S`)
	ruleWords = regexp.MustCompile(`(?i)\b(must|never|always|do not|don't|required?|forbidden|important|critical|only|avoid|prefer|should|ask|before)\b`)
	hardWords = regexp.MustCompile(`(?i)\b(must|never|always|do not|don't|required|forbidden|critical)\b`)
)

// truncatePolicy keeps, beside start and end, the lines of the middle that read
// like rules: an agent that misses a "never" does harm.
func truncatePolicy(name, content string, limit int) (string, bool) {
	head := chars.Head(content, limit*45/100)
	tail := chars.Tail(content, limit*15/100)
	if len(head)+len(tail) >= len(content) {
		return "", false
	}
	total := chars.Count(content)
	mark := longMark(name, chars.Count(head), chars.Count(tail), total)
	room := min(limit*35/100, limit-chars.Count(head)-chars.Count(tail)-chars.Count(mark))
	digest := policyDigest(content[len(head):len(content)-len(tail)], room)
	if digest == "" {
		return "", false
	}
	return head + mark + digest + tail, true
}

// policyDigest is the rules of a text in at most room chars: hard rules are taken
// first, and what is taken stands in the order of the document.
func policyDigest(text string, room int) string {
	type rule struct {
		at   int
		line string
	}
	var hard, soft []rule
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if !chars.Fits(line, maxRule) {
			line = chars.Head(line, maxRule-1) + "…"
		}
		switch {
		case hardWords.MatchString(line):
			hard = append(hard, rule{i, line})
		case listItem.MatchString(line) || ruleWords.MatchString(line):
			soft = append(soft, rule{i, line})
		}
	}
	rules := slices.Concat(hard, soft)
	omitted := func(n int) string { return fmt.Sprintf("[...%d more policy lines omitted...]\n", n) }
	room -= chars.Count(digestTitle) + chars.Count(omitted(len(rules)))
	var kept []rule
	for _, r := range rules {
		if size := chars.Count(r.line) + 1; size <= room {
			room -= size
			kept = append(kept, r)
		}
	}
	if len(kept) == 0 {
		return ""
	}
	slices.SortFunc(kept, func(a, b rule) int { return a.at - b.at })
	var b strings.Builder
	b.WriteString(digestTitle)
	for _, r := range kept {
		b.WriteString(r.line + "\n")
	}
	if n := len(rules) - len(kept); n > 0 {
		b.WriteString(omitted(n))
	}
	return b.String()
}
