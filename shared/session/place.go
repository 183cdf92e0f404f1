package session

import (
	"slices"
	"strings"
)

// The types of chats, as resets tell them apart.
const (
	Direct = "direct"
	Group  = "group"
	Thread = "thread"
)

// Internal is the channel of conversations whose keys name none: they are held with the
// gateway itself.
const Internal = "webchat"

// Place is where a conversation is held, as its key says (spec: runtime 3.1).
type Place struct {
	Channel string // lower-cased; Internal where the key names none
	Type    string // Direct, Group or Thread
	Group   bool   // a group or room, also where Type is Thread
}

// notChannels begin keys that are not about a channel: what stands behind is an id.
var notChannels = []string{"cron", "subagent", "hook", "acp", "explicit", Direct, Group, "channel", Thread}

// PlaceOf reads a canonical key:
//
//	agent:A:<channel>[:<account>]:direct|group|channel:<id>[:thread:<id>]
//
// Of any other key the place is a direct chat of Internal, or a thread in one.
func PlaceOf(key string) Place {
	_, rest, _ := strings.Cut(strings.TrimPrefix(key, "agent:"), ":")
	p := Place{Channel: Internal, Type: Direct}
	base, thread, ok := strings.Cut(rest, ":thread:")
	inThread := ok && base != "" && thread != ""
	if inThread {
		rest = base
	}
	parts := strings.Split(rest, ":")
	if channel := parts[0]; channel != "" && !slices.Contains(notChannels, channel) {
		for _, i := range []int{1, 2} { // 2: behind an account
			if len(parts) < i+2 || parts[i+1] == "" || !slices.Contains([]string{Direct, Group, "channel"}, parts[i]) {
				continue
			}
			p.Channel, p.Group = strings.ToLower(channel), parts[i] != Direct
			break
		}
	}
	switch {
	case inThread:
		p.Type = Thread
	case p.Group:
		p.Type = Group
	}
	return p
}
