// Package setting splits a setting that is written in one line into what holds
// everywhere and what holds in one channel or one kind of chat:
//
//	steer debounce:500ms; channel/slack: collect; channel/telegram: debounce:300ms
//
// Guarantees: what stands in front of the first section is the base; a section is
// there once, under a lower-cased name; an error names the section and says which ones
// there are.
package setting

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// ErrSection is the class of every error of Split.
var ErrSection = errors.New("section")

// Kind is a kind of sections.
type Kind struct {
	Name string   // as in "channel"
	Of   []string // the names that it may have; nil: any word
}

// Channel are sections that hold in one channel.
var Channel = Kind{Name: "channel"}

// Section is a part of a setting: the base has neither kind nor name.
type Section struct{ Kind, Name, Text string }

// String is the head of the section as it is written, without its colon.
func (s Section) String() string {
	if s.Kind == "" {
		return "the base"
	}
	return s.Kind + "/" + s.Name
}

// In is an error about what the section says, with the section's name in front. Of the
// base it is the error itself.
func (s Section) In(err error) error {
	if err == nil || s.Kind == "" {
		return err
	}
	return fmt.Errorf("%s: %w", s, err)
}

// Split takes a setting apart: "base; kind/name: text; …". The base comes first and may
// be empty; it is always among the sections that are given. Errors: ErrSection.
func Split(text string, kinds ...Kind) ([]Section, error) {
	out := []Section{{}}
	for i, part := range strings.Split(text, ";") {
		part = strings.TrimSpace(part)
		switch {
		case part == "":
			continue
		case !headed(part) && i == 0:
			out[0].Text = part
			continue
		case !headed(part):
			return nil, fmt.Errorf("%w: %q has no name; want %s", ErrSection, Clip(part), forms(kinds))
		}
		s, err := read(part, kinds)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o Section) bool { return o.Kind == s.Kind && o.Name == s.Name }) {
			return nil, fmt.Errorf("%w: %s is there twice", ErrSection, s)
		}
		out = append(out, s)
	}
	return out, nil
}

// headed says whether a part begins with the head of a section. No setting has a word
// with a slash in it.
func headed(part string) bool {
	if i := strings.IndexFunc(part, unicode.IsSpace); i >= 0 {
		part = part[:i]
	}
	return strings.Contains(part, "/")
}

func read(part string, kinds []Kind) (Section, error) {
	head, text, cut := strings.Cut(part, ":")
	kind, name, _ := strings.Cut(strings.ToLower(strings.TrimSpace(head)), "/")
	s := Section{Kind: kind, Name: name, Text: strings.TrimSpace(text)}
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == kind })
	switch {
	case i < 0, name == "", strings.ContainsFunc(name, forbidden), kinds[i].Of != nil && !slices.Contains(kinds[i].Of, name):
		return s, fmt.Errorf("%w: %q is none; want %s", ErrSection, Clip(head), forms(kinds))
	case !cut:
		return s, fmt.Errorf("%w: there is no colon behind %s", ErrSection, Clip(head))
	case s.Text == "":
		return s, fmt.Errorf("%w: %s says nothing", ErrSection, s)
	}
	return s, nil
}

// forbidden says which characters cannot stand in a name: those that have a meaning in
// a session key or here.
func forbidden(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == '/' || r == ':'
}

// forms says how sections are written.
func forms(kinds []Kind) string {
	var all []string
	for _, k := range kinds {
		if k.Of == nil {
			all = append(all, k.Name+"/<name>: …")
			continue
		}
		for _, name := range k.Of {
			all = append(all, k.Name+"/"+name+": …")
		}
	}
	return strings.Join(all, ", ")
}

// Clip shortens what somebody wrote for a text about it.
func Clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
