package rpc

import (
	"slices"
	"strings"
	"unicode"

	"laneway/shared/model/thinking"
	"laneway/shared/protocol"
	"laneway/shared/run"
)

// levels are what a message says about how it is to be answered; empty fields say
// nothing (spec: loop 8).
type levels struct {
	thinking, verbose, reasoning, fast string
}

// apply puts them into the run of the message alone.
func (l levels) apply(in *run.Input) {
	in.Thinking = orElse(l.thinking, in.Thinking)
	in.Verbose = orElse(l.verbose, in.Verbose)
	in.Reasoning = orElse(l.reasoning, in.Reasoning)
	in.Fast = orElse(l.fast, in.Fast)
}

// The directives, by the name that is stored.
const (
	dirThink     = "think"
	dirVerbose   = "verbose"
	dirTrace     = "trace"
	dirReasoning = "reasoning"
	dirFast      = "fast"
	dirModel     = "model"

	// Shortcuts are answered by the gateway, also beside a text (spec: loop 8).
	dirHelp     = "help"
	dirCommands = "commands"
	dirStatus   = "status"
	dirWhoami   = "whoami"
)

// directives are their spellings.
var directives = map[string]string{
	"/think": dirThink, "/thinking": dirThink, "/t": dirThink,
	"/verbose": dirVerbose, "/v": dirVerbose,
	"/trace":     dirTrace,
	"/reasoning": dirReasoning, "/reason": dirReasoning,
	"/fast":  dirFast,
	"/model": dirModel,
	"/help":  dirHelp, "/commands": dirCommands, "/status": dirStatus, "/whoami": dirWhoami,
}

// said is one directive of a message.
type said struct {
	name  string // dirThink, ...
	level string // as it is stored; empty: none was given, or it is not one
	word  string // as it was written; empty: none was given
	clear bool   // back to what holds where the session says nothing
	known bool   // word is a level
}

// shortcut says whether the directive is a question to the gateway. It takes no word.
func (s said) shortcut() bool {
	switch s.name {
	case dirHelp, dirCommands, dirStatus, dirWhoami:
		return true
	}
	return false
}

var (
	traceLevels   = map[string]string{"on": "on", "off": "off", "true": "on", "false": "off"}
	verboseLevels = map[string]string{"on": "on", "full": "full", "off": "off", "true": "on", "false": "off", "all": "full"}
	showLevels    = map[string]string{"on": "on", "off": "off", "stream": "stream", "true": "on", "false": "off", "streaming": "stream"}
	fastLevels    = map[string]string{"auto": "auto", "on": "on", "off": "off", "true": "on", "false": "off"}
	clearWords    = map[string]bool{"default": true, "inherit": true, "clear": true, "reset": true, "unpin": true}
)

// read gives what a word means to a directive.
func (s said) read(word string) said {
	low := strings.ToLower(word)
	s.word = word
	switch s.name {
	case dirThink:
		s.level, s.known = thinking.Parse(low)
	case dirVerbose:
		s.level, s.known = verboseLevels[low], verboseLevels[low] != ""
	case dirTrace:
		s.level, s.known = traceLevels[low], traceLevels[low] != ""
	case dirReasoning:
		s.level, s.known = showLevels[low], showLevels[low] != ""
	case dirFast:
		s.level, s.known = fastLevels[low], fastLevels[low] != ""
	case dirModel:
		s.level, s.known = word, true
	}
	if (s.name == dirThink || s.name == dirFast || s.name == dirModel) && clearWords[low] {
		s.level, s.clear, s.known = "", true, true
	}
	if !s.known {
		s.level = ""
	}
	return s
}

// cutDirectives takes the directives out of a message. A directive goes with its own
// separator, other white space stays. In a message that says more, one without a level,
// or with a word that is none, is no directive: it is the user's text, such as a path.
// isModel says whether a word names a model; nil: any may.
func cutDirectives(message string, isModel func(string) bool) (found []said, rest string) {
	if found, rest = cut(message, isModel, true); strings.TrimSpace(rest) == "" {
		return found, rest
	}
	return cut(message, isModel, false)
}

// cut is cutDirectives; bare says whether directives without a level are some.
func cut(message string, isModel func(string) bool, bare bool) (found []said, rest string) {
	rest = message
	from := 0
	for range maxDirectives {
		at, end, s, ok := nextDirective(rest, from)
		if !ok {
			return found, rest
		}
		if s.name == dirModel && s.known && !s.clear && isModel != nil {
			s.known = isModel(s.word)
		}
		alone := strings.TrimSpace(rest[:at]) == "" && strings.TrimSpace(rest[end:]) == ""
		if s.word != "" && !s.known && !alone || s.word == "" && !bare && !s.shortcut() {
			from = at + 1
			continue
		}
		found = append(found, s)
		rest = rest[:at] + strings.TrimPrefix(rest[end:], " ")
		from = at
	}
	return found, rest // what looks like more of them is text
}

// maxDirectives bounds what is looked at in a message: each look may go over all of it.
const maxDirectives = 32

// nextDirective finds the first directive from a place on: where it begins and ends.
func nextDirective(text string, from int) (at, end int, s said, ok bool) {
	for i := from; i < len(text); i++ {
		name, j := directiveAt(text, i)
		if name == "" {
			continue
		}
		if s = (said{name: name}); s.shortcut() {
			return i, j, s, true
		}
		k := j
		if k < len(text) && text[k] == ':' {
			k++
		}
		for k < len(text) && (text[k] == ' ' || text[k] == '\t') {
			k++
		}
		word := text[k:wordEnd(text, k)]
		if word == "" || word[0] == '/' {
			return i, j, s, true
		}
		// "extra high" is one level.
		if two := wordEnd(text, wordEnd(text, k)+1); name == dirThink && strings.EqualFold(word, "extra") && two <= len(text) {
			if t := s.read(strings.Join(strings.Fields(text[k:two]), " ")); t.known {
				return i, two, t, true
			}
		}
		return i, wordEnd(text, k), s.read(word), true
	}
	return 0, 0, s, false
}

// directiveAt is the name of the directive at a place, and where it ends; empty: there is
// none. A shortcut has nothing behind it.
func directiveAt(text string, i int) (name string, end int) {
	if text[i] != '/' || i > 0 && !isSpace(text[i-1]) {
		return "", i
	}
	j := i + 1
	for j < len(text) && (text[j] >= 'a' && text[j] <= 'z' || text[j] >= 'A' && text[j] <= 'Z') {
		j++
	}
	s := said{name: directives[strings.ToLower(text[i:j])]}
	if j < len(text) && !isSpace(text[j]) && (text[j] != ':' || s.shortcut()) {
		return "", i
	}
	return s.name, j
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }

func wordEnd(text string, from int) int {
	if from >= len(text) {
		return len(text)
	}
	if n := strings.IndexFunc(text[from:], unicode.IsSpace); n >= 0 {
		return from + n
	}
	return len(text)
}

// options are the levels of a directive for a hint.
func (s said) options(think []string) string {
	switch s.name {
	case dirThink:
		return strings.Join(think, ", ")
	case dirVerbose:
		return "on, full, off"
	case dirTrace:
		return "on, off"
	case dirReasoning:
		return "on, off, stream"
	}
	return "auto, on, off, default"
}

// title is what a directive is called in answers.
func (s said) title() string {
	switch s.name {
	case dirThink:
		return "thinking level"
	case dirVerbose:
		return "verbose level"
	case dirTrace:
		return "trace level"
	case dirReasoning:
		return "reasoning level"
	}
	return "fast mode"
}

// knownLevel refuses a thinking level of a call that no model has; one that only its
// model does not know becomes the nearest that it does.
func knownLevel(method, level string) error {
	if _, ok := thinking.Parse(level); !ok && level != "" {
		return protocol.InvalidParams(method, "at /thinking: must be one of "+strings.Join(thinking.All, ", "))
	}
	return nil
}

// supported says whether a model takes a thinking level.
func supported(level string, known []string) bool {
	return level == "" || slices.Contains(known, level)
}
