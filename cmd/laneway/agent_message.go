package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// maxMessageFile is the largest file that is taken as a message.
const maxMessageFile = 4 << 20

// message is the one message that was given.
func (c *agentCommand) message(a *app) (string, error) {
	switch {
	case c.Message != nil && c.MessageFile != "":
		return "", errors.New("--message and --message-file: give one of them")
	case c.Message == nil && c.MessageFile == "":
		return "", errors.New("nothing to send: --message TEXT or --message-file FILE")
	}
	var message string
	if c.Message != nil {
		message = *c.Message
	} else {
		var err error
		if message, err = a.readMessage(c.MessageFile); err != nil {
			return "", fmt.Errorf("--message-file %s: %w", c.MessageFile, err)
		}
	}
	if strings.TrimSpace(message) == "" {
		return "", errors.New("the message is empty")
	}
	if word, _, _ := strings.Cut(strings.TrimSpace(message), " "); word == "/compact" {
		return "", errors.New("/compact is not a message: commands are not run from here")
	}
	return message, nil
}

func (a *app) readMessage(path string) (string, error) {
	in := a.stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxMessageFile+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxMessageFile {
		return "", errors.New("larger than 4 MiB")
	}
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	if !utf8.Valid(b) {
		return "", errors.New("not UTF-8")
	}
	return string(b), nil
}
