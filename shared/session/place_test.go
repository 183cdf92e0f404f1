package session_test

import (
	"testing"

	"laneway/shared/session"
)

// TestRuntime31_PlaceOfAKey: each row of the grammar, and keys that look like one.
func TestRuntime31_PlaceOfAKey(t *testing.T) {
	t.Parallel()
	internal := session.Place{Channel: session.Internal, Type: session.Direct}
	for _, row := range []struct {
		name, key string
		want      session.Place
	}{
		{"main", "agent:main:main", internal},
		{"per-peer", "agent:main:direct:p1", internal},
		{"per-channel-peer", "agent:main:slack:direct:p1", session.Place{Channel: "slack", Type: session.Direct}},
		{"per-account-channel-peer", "agent:main:slack:work:direct:p1", session.Place{Channel: "slack", Type: session.Direct}},
		{"a peer called group", "agent:main:slack:direct:group", session.Place{Channel: "slack", Type: session.Direct}},
		{"a group whose id begins with direct", "agent:main:slack:group:direct:p1", session.Place{Channel: "slack", Type: session.Group, Group: true}},
		{"group", "agent:main:discord:group:g1", session.Place{Channel: "discord", Type: session.Group, Group: true}},
		{"room", "agent:main:slack:channel:c1", session.Place{Channel: "slack", Type: session.Group, Group: true}},
		{"a room whose id has colons", "agent:main:matrix:channel:!r:example.org", session.Place{Channel: "matrix", Type: session.Group, Group: true}},
		{"thread in a room", "agent:main:slack:channel:c1:thread:17.5", session.Place{Channel: "slack", Type: session.Thread, Group: true}},
		{"topic of a direct chat", "agent:main:telegram:direct:p1:thread:2", session.Place{Channel: "telegram", Type: session.Thread}},
		{"thread of main", "agent:main:main:thread:2", session.Place{Channel: session.Internal, Type: session.Thread}},
		{"a thread without an id is none", "agent:main:slack:channel:c1:thread:", session.Place{Channel: "slack", Type: session.Group, Group: true}},
		{"a group without an id is none", "agent:main:slack:group:", internal},
		{"cron", "agent:main:cron:j1", internal},
		{"run of a job", "agent:main:cron:j1:run:s1", internal},
		{"a job called group", "agent:main:cron:group:x", internal},
		{"sub-agent", "agent:main:subagent:u1", internal},
		{"an explicit key that looks like one", "agent:main:explicit:group:x", internal},
		{"any other word", "agent:main:work", internal},
		{"sentinel", "agent:main:global", internal},
	} {
		if got := session.PlaceOf(row.key); got != row.want {
			t.Errorf("%s: %s is %+v, want %+v", row.name, row.key, got, row.want)
		}
	}
}
