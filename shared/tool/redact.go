package tool

import (
	"regexp"
	"strings"
)

// mask stands in the place of a secret.
const mask = "***"

// secretWords end the names of secrets, written without separators in lower case.
var secretWords = []string{
	"password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "secretkey", "privatekey", "signingkey",
	"authorization", "cookie", "credential", "credentials",
}

var (
	separators = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")
	envKey     = regexp.MustCompile(`^[A-Z0-9]+(?:_[A-Z0-9]+)*_(?:KEY|PASS|PWD|PAT)$`)
)

// secretName says whether the value of a field or variable of this name is secret.
func secretName(name string) bool {
	if name == "" {
		return false
	}
	plain := separators.Replace(strings.ToLower(name))
	for _, word := range secretWords {
		if strings.HasSuffix(plain, word) {
			return true
		}
	}
	return envKey.MatchString(name)
}

// shape is a kind of secret in a text. Regular expressions are slow beside a
// search for a substring, and nearly all texts hold none of the needles.
type shape struct {
	needles []string // lower case; one of them is in every match
	pattern *regexp.Regexp
	with    string
}

var shapes = []shape{
	{
		[]string{"private key-----"},
		regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`), mask,
	},
	{
		[]string{"sk-", "sk_", "rk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "xapp-", "npm_", "hf_", "aiza"},
		regexp.MustCompile(`\b(?:[sr]k[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{16,}[A-Za-z0-9_-]*|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}|npm_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{20,}|AIza[A-Za-z0-9_-]{30,})`), mask,
	},
	{[]string{"akia", "asia"}, regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), mask},
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`), mask},
	{
		[]string{"bearer", "basic"},
		regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{12,}`), "${1} " + mask,
	},
	{
		[]string{"authorization", "cookie", "api-key"},
		regexp.MustCompile(`(?i)\b((?:proxy-)?authorization|(?:set-)?cookie|x-api-key|api-key)(["']?\s*:\s*["']?)[^\r\n"']+`), "${1}${2}" + mask,
	},
	{[]string{"://"}, regexp.MustCompile(`://([^/\s:@"']*):[^/\s@"']+@`), "://${1}:" + mask + "@"},
	{
		[]string{"password", "passwd", "passphrase", "secret", "token", "api_key", "apikey", "api-key", "access_key", "accesskey", "private_key", "privatekey", "_key", "_pass"},
		regexp.MustCompile(`(?i)\b([a-z0-9_.-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|[a-z0-9]_key|_pass)["']?\s*(?:=|:)\s*)(?:"[^"\r\n]{4,}"|'[^'\r\n]{4,}'|[^\s"',;&]{4,})`), "${1}" + mask,
	},
}

// redact replaces what looks like a secret in a text that is to be shown:
// private keys, tokens of known shapes, authorization headers, passwords in URLs,
// and values assigned to names that say they are secret. It errs on the side of
// hiding: a shown text is for people to follow the work, not to copy from.
func redact(text string) string {
	lower := strings.ToLower(text)
	for _, s := range shapes {
		for _, needle := range s.needles {
			if strings.Contains(lower, needle) {
				text = s.pattern.ReplaceAllString(text, s.with)
				break
			}
		}
	}
	return text
}
