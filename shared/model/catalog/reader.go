package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
)

// PathError is one thing that is wrong with a configuration.
type PathError struct {
	Path string // in the file, as providers.x.models[2].contextWindow
	Text string
}

func (p *PathError) Error() string {
	if p.Path == "" {
		return p.Text
	}
	return p.Path + ": " + p.Text
}

// ErrInvalid is in the chain of the error of a configuration that is refused.
var ErrInvalid = errors.New("the configuration of models is not valid")

// invalid is all problems together, in the order of their paths.
type invalid struct{ problems []*PathError }

func (e *invalid) Error() string {
	lines := make([]string, len(e.problems))
	for i, p := range e.problems {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

func (e *invalid) Unwrap() []error {
	out := []error{ErrInvalid}
	for _, p := range e.problems {
		out = append(out, p)
	}
	return out
}

// reader checks as it reads. It goes on behind a problem, so that all are told at once.
type reader struct {
	problems []*PathError
	aliases  map[string]string // where each is, by its lower case
}

func (r *reader) addf(path, format string, args ...any) {
	r.problems = append(r.problems, &PathError{path, fmt.Sprintf(format, args...)})
}

func (r *reader) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return &invalid{r.problems}
}

// member reads one member of an object.
type member func(path string, raw json.RawMessage)

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func at(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// object reads an object whose members are known; others are a problem that names them.
func (r *reader) object(path string, raw json.RawMessage, members map[string]member) {
	r.each(path, raw, func(path, name string, raw json.RawMessage) {
		if f, ok := members[name]; ok {
			f(path, raw)
			return
		}
		known := make([]string, 0, len(members))
		for n := range members {
			known = append(known, n)
		}
		sort.Strings(known)
		r.addf(path, "is not known here; known are %s", strings.Join(known, ", "))
	})
}

// each reads an object whose members are named by the user, in the order of names. A
// member that is there twice is a problem: one of them would have no effect.
func (r *reader) each(path string, raw json.RawMessage, f func(path, name string, raw json.RawMessage)) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		r.addf(path, "must be an object")
		return
	}
	for _, n := range twice(raw) {
		r.addf(join(path, n), "is there twice")
	}
	names := make([]string, 0, len(members))
	for n := range members {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		f(join(path, n), n, members[n])
	}
}

// twice names the members of a valid object that are there more than once.
func twice(raw json.RawMessage) (names []string) {
	seen := map[string]bool{}
	d := json.NewDecoder(bytes.NewReader(raw))
	_, err := d.Token() // {
	for err == nil && d.More() {
		var name json.Token
		var value json.RawMessage
		if name, err = d.Token(); err == nil {
			err = d.Decode(&value)
		}
		if s, ok := name.(string); ok && seen[s] && !slices.Contains(names, s) {
			names = append(names, s)
		} else if ok {
			seen[s] = true
		}
	}
	return names
}

// oneWord says whether a text can be written as one word, as /model takes it.
func oneWord(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) })
}

// alias checks the short name of a model: it has to find that one, and no command.
func (r *reader) alias(path, alias string) {
	low := strings.ToLower(alias)
	switch first, taken := r.aliases[low]; {
	case alias == "":
		return
	case !oneWord(alias) || strings.Contains(alias, "/"):
		r.addf(path, "must be one word without '/'")
	case slices.Contains(notAliases, low):
		r.addf(path, "must not be one of %s: /model takes them for something else", strings.Join(notAliases, ", "))
	case taken:
		r.addf(path, "is the same as %s", first)
	}
	if r.aliases == nil {
		r.aliases = map[string]string{}
	}
	r.aliases[low] = path
}

// notAliases are words that /model takes for something else than a name.
var notAliases = []string{"default", "inherit", "clear", "reset", "unpin", "list", "status"}

// list reads a list, at most max long.
func (r *reader) list(path string, raw json.RawMessage, most int, f member) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil || items == nil {
		r.addf(path, "must be a list")
		return
	}
	if len(items) > most {
		r.addf(path, "must not have more than %d entries", most)
		return
	}
	for i, item := range items {
		f(at(path, i), item)
	}
}

// text reads a string of 1 to max bytes.
func (r *reader) text(most int, into *string) member {
	return func(path string, raw json.RawMessage) {
		var s string
		switch {
		case json.Unmarshal(raw, &s) != nil || string(raw) == "null":
			r.addf(path, "must be a string")
		case strings.TrimSpace(s) == "":
			r.addf(path, "must not be blank")
		case len(s) > most:
			r.addf(path, "must not be longer than %d bytes", most)
		default:
			*into = s
		}
	}
}

// word reads one of some words.
func (r *reader) word(into *string, words ...string) member {
	return func(path string, raw json.RawMessage) {
		var s string
		if json.Unmarshal(raw, &s) != nil || !slices.Contains(words, s) {
			r.addf(path, "must be one of %s", strings.Join(words, ", "))
			return
		}
		*into = s
	}
}

// count reads a whole number from 1 to max.
// whole reads a number of which 0 is one.
func (r *reader) whole(most int, f func(int)) member {
	return func(path string, raw json.RawMessage) {
		var n int
		if json.Unmarshal(raw, &n) != nil || string(raw) == "null" || n < 0 || n > most {
			r.addf(path, "must be a whole number from 0 to %d", most)
			return
		}
		f(n)
	}
}

func (r *reader) count(most int, into *int) member {
	return func(path string, raw json.RawMessage) {
		var n int
		if json.Unmarshal(raw, &n) != nil || string(raw) == "null" || n < 1 || n > most {
			r.addf(path, "must be a whole number from 1 to %d", most)
			return
		}
		*into = n
	}
}

// amount reads a number that is not negative.
func (r *reader) amount(into *float64) member {
	return func(path string, raw json.RawMessage) {
		var n float64
		if json.Unmarshal(raw, &n) != nil || string(raw) == "null" || n < 0 || math.IsInf(n, 0) {
			r.addf(path, "must be a number from 0")
			return
		}
		*into = n
	}
}

func (r *reader) truth(into **bool) member {
	return func(path string, raw json.RawMessage) {
		var b *bool
		if json.Unmarshal(raw, &b) != nil || b == nil {
			r.addf(path, "must be true or false")
			return
		}
		*into = b
	}
}

// address reads an http or https URL. It is never quoted: its user part may hold a
// password, which belongs elsewhere.
func (r *reader) address(into *string) member {
	return func(path string, raw json.RawMessage) {
		var s string
		u, err := url.Parse("")
		if json.Unmarshal(raw, &s) == nil {
			u, err = url.Parse(s)
		}
		switch {
		case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
			r.addf(path, "must be an http or https address")
		case u.User != nil:
			r.addf(path, "must not hold a user or a password: name a key with apiKey")
		default:
			*into = s
		}
	}
}

var (
	variable = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]{0,127})\}$`)
	varName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	secName  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
)

// key reads the name of what holds a key: "${VARIABLE}", {"env": "VARIABLE"} or
// {"secret": "NAME"}. What was written instead is never quoted: it may be a key.
func (r *reader) key(into *Key) member {
	return func(path string, raw json.RawMessage) {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			if m := variable.FindStringSubmatch(s); m != nil {
				*into = Key{FromEnv, m[1]}
				return
			}
			r.addf(path, `must name what holds the key, as "${VARIABLE}", {"env": "VARIABLE"} or {"secret": "NAME"}; a key itself does not belong in this file`)
			return
		}
		var named map[string]string
		if json.Unmarshal(raw, &named) != nil || len(named) != 1 {
			r.addf(path, `must be "${VARIABLE}", {"env": "VARIABLE"} or {"secret": "NAME"}`)
			return
		}
		for source, name := range named {
			switch {
			case source == string(FromEnv) && varName.MatchString(name):
				*into = Key{FromEnv, name}
			case source == string(FromSecret) && secName.MatchString(name):
				*into = Key{FromSecret, name}
			case source == string(FromEnv):
				r.addf(path+".env", "must be the name of an environment variable")
			case source == string(FromSecret):
				r.addf(path+".secret", "must be a name of letters, digits, '_', '-' and '.'")
			default:
				r.addf(path, `must be "${VARIABLE}", {"env": "VARIABLE"} or {"secret": "NAME"}`)
			}
		}
	}
}
