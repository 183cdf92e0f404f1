package session_test

import (
	"errors"
	"strings"
	"testing"

	"laneway/shared/session"
	"laneway/shared/table"
)

func TestKey(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", session.MaxKey-len("agent:main:"))
	for _, c := range []struct{ raw, agent, key, wantAgent string }{
		{"", "", "agent:main:main", "main"},
		{"  ", "", "agent:main:main", "main"},
		{"", "ops", "agent:ops:main", "ops"},
		{"work", "", "agent:main:work", "main"},
		{" Work ", "", "agent:main:work", "main"},
		{"work", "ops", "agent:ops:work", "ops"},
		{"agent:ops:work", "", "agent:ops:work", "ops"},
		{"Agent:OPS:Work", "ops", "agent:ops:work", "ops"},
		{"agent:main:a:b:c", "", "agent:main:a:b:c", "main"},
		{"whatsapp:+49 170", "", "agent:main:whatsapp:+49 170", "main"},
		{"ÄÖ", "", "agent:main:äö", "main"},
		{"a#S#b", "", "agent:main:a#s#b", "main"},
		{long, "", "agent:main:" + long, "main"},
	} {
		key, agent, err := session.Key(c.raw, c.agent)
		if err != nil || key != c.key || agent != c.wantAgent {
			t.Errorf("Key(%q, %q) = %q, %q, %v; want %q, %q", c.raw, c.agent, key, agent, err, c.key, c.wantAgent)
		}
		if got := session.AgentOf(c.key); got != c.wantAgent {
			t.Errorf("AgentOf(%q) = %q", c.key, got)
		}
	}
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ raw, agent string }{
		"agent of the key is another":  {"agent:a:x", "b"},
		"no rest":                      {"agent:main:", ""},
		"no rest, spaces":              {"agent:main:   ", ""},
		"no agent":                     {"agent::x", ""},
		"agent only":                   {"agent:main", ""},
		"agent with a dot":             {"agent:a.b:x", ""},
		"agent id with capitals":       {"x", "Main"},
		"agent id with a space":        {"x", "a b"},
		"agent id too long":            {"x", strings.Repeat("a", 65)},
		"agent id begins with a dash":  {"x", "-a"},
		"control character":            {"a\x00b", ""},
		"newline":                      {"a\nb", ""},
		"invalid UTF-8":                {"a\xffb", ""},
		"too long":                     {strings.Repeat("x", session.MaxKey+1), ""},
		"too long in canonical form":   {strings.Repeat("x", session.MaxKey), ""},
		"too long once it is lowered":  {strings.Repeat("Ⱥ", 250), ""},
		"too long, and nothing but it": {strings.Repeat(" ", session.MaxKey) + strings.Repeat("x", session.MaxKey), ""},
	} {
		if key, _, err := session.Key(c.raw, c.agent); !errors.Is(err, session.ErrKey) {
			t.Errorf("%s: got %q, %v; want ErrKey", name, key, err)
		} else if len(err.Error()) > 300 {
			t.Errorf("%s: the error repeats its input: %d bytes", name, len(err.Error()))
		}
	}
}

// FuzzKey: what is accepted is canonical (the same again), can be stored, and belongs
// to the agent that was named.
func FuzzKey(f *testing.F) {
	for _, s := range []string{"", "work", "agent:a:b", "AGENT:A:B", "ß", "İ", "Ⱥ", "a\tb", "agent:", ":::", " x "} {
		f.Add(s, "")
		f.Add(s, "ops")
	}
	f.Fuzz(func(t *testing.T, raw, agentID string) {
		key, agent, err := session.Key(raw, agentID)
		if err != nil {
			if !errors.Is(err, session.ErrKey) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		again, agent2, err := session.Key(key, agentID)
		if err != nil || again != key || agent2 != agent {
			t.Fatalf("Key(%q) = %q, then %q, %v", raw, key, again, err)
		}
		if !session.ValidAgent(agent) || session.AgentOf(key) != agent || agentID != "" && agentID != agent {
			t.Fatalf("agent %q of %q, asked for %q", agent, key, agentID)
		}
		ref := session.Ref{Tenant: "t", Key: key}
		if back, ok := session.RefOfPK(ref.PK()); !ok || back != ref {
			t.Fatalf("%q leads back to %+v", ref.PK(), back)
		}
		for _, k := range []table.Key{ref.MetaKey(), ref.EntryKey(), ref.MailKey(1)} {
			if err := table.ValidateKey(k); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestTenants(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"": false, "default": true, "a-1": true, "A": false, "a_b": false, "a#b": false, "ä": false,
		strings.Repeat("a", 63): true, strings.Repeat("a", 64): false,
	} {
		if got := session.ValidTenant(s); got != want {
			t.Errorf("ValidTenant(%q) = %v", s, got)
		}
	}
}

// Two tenants, or two sessions, never meet in an item, whatever they are called.
func TestK2_KeysOfTwoTenantsNeverMeet(t *testing.T) {
	t.Parallel()
	seen := make(map[string]session.Ref)
	for _, tenant := range []string{"a", "b", "a-b"} {
		for _, raw := range []string{"x", "x#S#x", "b#T#x", "a#S#agent:main:x"} {
			key, _, err := session.Key(raw, "")
			if err != nil {
				t.Fatal(err)
			}
			ref := session.Ref{Tenant: tenant, Key: key}
			for _, pk := range []string{ref.PK(), ref.TranscriptPK("s"), ref.Hash()} {
				if other, twice := seen[pk]; twice {
					t.Errorf("%+v and %+v share %q", ref, other, pk)
				}
				seen[pk] = ref
			}
		}
	}
}
