package protocol

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxProblems  = 8  // a frame can hold millions of wrong members: name some
	maxNameRunes = 64 // names are the caller's text
)

// problems collects what is wrong with a value. They are reported in the order
// in which the reference reports them: absent members first, then unknown ones,
// then wrong values.
type problems struct {
	missing, unexpected, wrong []string
	// refusal takes the place of the list, for rules with a text of their own.
	refusal *Error
	path    []step
	n       int
}

type step struct {
	name  string
	index int // of a list, when name is empty
}

func (p *problems) any() bool { return p.n > 0 || p.refusal != nil }

func (p *problems) push(s step) { p.path = append(p.path, s) }
func (p *problems) pop()        { p.path = p.path[:len(p.path)-1] }

// where is the JSON pointer of the value at hand, "" for the whole.
func (p *problems) where() string {
	var b strings.Builder
	for _, s := range p.path {
		b.WriteByte('/')
		if s.name != "" {
			b.WriteString(s.name)
		} else {
			b.WriteString(strconv.Itoa(s.index))
		}
	}
	return b.String()
}

func (p *problems) add(list *[]string, text string) {
	p.n++
	if p.n <= maxProblems {
		*list = append(*list, text)
	}
}

func (p *problems) located(text string) string {
	if at := p.where(); at != "" {
		return "at " + at + ": " + text
	}
	return text
}

// is says what is wrong with the value at hand.
func (p *problems) is(text string) { p.add(&p.wrong, p.located(text)) }

// member says what is wrong with a member of the object at hand.
func (p *problems) member(name, text string) {
	p.push(step{name: name})
	p.is(text)
	p.pop()
}

func (p *problems) lacks(name string) {
	p.add(&p.missing, p.located("must have required property '"+name+"'"))
}

func (p *problems) unknown(name, what string) {
	at := p.where()
	if at == "" {
		at = "root"
	}
	p.add(&p.unexpected, "at "+at+": "+what+" property '"+shorten(name, maxNameRunes)+"'")
}

// refuse sets an error of its own text; the first one stays.
func (p *problems) refuse(e *Error) {
	if p.refusal == nil {
		p.refusal = e
	}
}

func (p *problems) String() string {
	all := make([]string, 0, maxProblems+1)
	all = append(all, p.missing...)
	all = append(all, p.unexpected...)
	all = append(all, p.wrong...)
	if rest := p.n - len(all); rest > 0 {
		all = append(all, "and "+strconv.Itoa(rest)+" more")
	}
	return strings.Join(all, "; ")
}

// shorten keeps the first runes of a caller's text, for use in a message.
func shorten(s string, runes int) string {
	if len(s) <= runes {
		return s
	}
	n := 0
	for i := range s {
		if n == runes {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// length counts characters (code points).
func length(s string) int64 { return int64(utf8.RuneCountInString(s)) }
