package rpc

import (
	"strings"
	"time"
	"unicode"

	"laneway/shared/run"
)

// What a session says when it was started over.
var resetNotices = map[string]string{
	reasonNew:   "✅ New session started.",
	reasonReset: "✅ Session reset.",
}

// Reasons of a reset, as commands and sessions.reset name them.
const (
	reasonNew   = "new"
	reasonReset = "reset"
)

// stopStop is the stop reason of runs that a chat command stopped.
const stopStop = run.StopStop

// resetCommand splits a message that begins with /new or /reset. The reason is empty
// where it does not.
func resetCommand(message string) (reason, rest string) {
	message = strings.TrimSpace(message)
	word := message
	if i := strings.IndexFunc(message, unicode.IsSpace); i >= 0 {
		word, rest = message[:i], strings.TrimSpace(message[i:])
	}
	switch strings.ToLower(word) {
	case "/new":
		return reasonNew, rest
	case "/reset":
		return reasonReset, rest
	}
	return "", ""
}

// stopWords stop what a session does when they are the whole message.
var stopWords = map[string]bool{
	"/stop": true, "stop": true, "esc": true, "abort": true, "exit": true, "interrupt": true, "halt": true,
	"please stop": true, "stop please": true, "stop run": true,
	"stopp": true, "anhalten": true, "abbrechen": true, // German
	"arrête": true, "arrete": true, // French
	"detente": true, "detén": true, "deten": true, // Spanish
	"pare": true, "parar": true, // Portuguese
	"fermati": true,                                                  // Italian
	"стоп":    true,                                                  // Russian
	"停止":      true, "停": true, "停下": true, "やめて": true, "止めて": true, //nolint:gosmopolitan // Chinese, Japanese: what users type
	"중지": true, "멈춰": true, // Korean
	"توقف": true, // Arabic
	"रुको": true, // Hindi
}

// isStop says whether a message is nothing but a stop word.
func isStop(message string) bool {
	word := strings.TrimRightFunc(strings.TrimSpace(message), func(c rune) bool { return unicode.IsPunct(c) || unicode.IsSpace(c) })
	return stopWords[strings.ToLower(word)]
}

// lastWrite bounds writes that are still made when their call's context has ended.
const lastWrite = 5 * time.Second
