package rpc_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"laneway/shared/clock"
	"laneway/shared/protocol"
	"laneway/shared/queueing"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/wiring"
	"laneway/test/backends"
)

// TestRuntime22_ByChannel: each row of the precedence, for sessions whose keys name a
// channel: what a message says, the session, the channel, the base, the default.
func TestRuntime22_ByChannel(t *testing.T) {
	t.Parallel()
	rules, err := queueing.Parse("followup cap:7; channel/slack: collect debounce:2s; channel/telegram: debounce:300ms; channel/webchat: interrupt")
	must(t, err)
	backends.Each(t, func(t *testing.T, s table.Store) {
		w := setup(t, over(s), settings(func(s *wiring.Settings) { s.QueueRules = rules }))
		c := w.user()
		show := func(key, text, id string) string {
			t.Helper()
			var f protocol.Final
			c.ok("agent", obj{"sessionKey": key, "message": text, "idempotencyKey": id}, &f)
			return f.Result.Payloads[0].Text
		}
		for i, row := range []struct{ name, key, send, want string }{
			{"mode and debounce of a channel", "agent:main:slack:group:g", "/queue", "mode=collect, debounce=2000ms, cap=7, drop=summarize"},
			{"of one of its rooms", "agent:main:slack:channel:c", "/queue", "mode=collect, debounce=2000ms, cap=7"},
			{"of a thread there", "agent:main:slack:channel:c:thread:1", "/queue", "mode=collect, debounce=2000ms, cap=7"},
			{"of a direct chat there", "agent:main:slack:work:direct:p", "/queue", "mode=collect, debounce=2000ms, cap=7"},
			{"channels are compared lower-cased", "agent:main:SLACK:group:g2", "/queue", "mode=collect, debounce=2000ms"},
			{"debounce alone: the mode is the base's", "agent:main:telegram:direct:p", "/queue", "mode=followup, debounce=300ms, cap=7"},
			{"a channel that says nothing: the base", "agent:main:discord:group:g", "/queue", "mode=followup, debounce=500ms, cap=7"},
			{"no channel in the key: the internal one", "agent:main:main", "/queue", "mode=interrupt, debounce=500ms, cap=7"},
			{"a peer without a channel: likewise", "agent:main:direct:p", "/queue", "mode=interrupt, debounce=500ms, cap=7"},
			{"the session over its channel", "agent:main:slack:group:g", "/queue steer debounce:1s", "mode=steer, debounce=1000ms, cap=7"},
			{"the session over its channel, kept", "agent:main:slack:group:g", "/queue", "mode=steer, debounce=1000ms, cap=7"},
			{"default forgets the session's, not the channel's", "agent:main:slack:group:g", "/queue default", "mode=collect, debounce=2000ms, cap=7"},
		} {
			if got := show(row.key, row.send, fmt.Sprint("q", i)); !strings.Contains(got, row.want) {
				t.Errorf("%s: %s, want %s", row.name, got, row.want)
			}
		}
		// What is at work holds the messages up, each as its mode says.
		const at = "agent:main:slack:group:g"
		send := func(id, text string) *protocol.Disposition {
			t.Helper()
			var sent protocol.ChatSent
			c.ok("chat.send", obj{"sessionKey": at, "message": text, "idempotencyKey": id}, &sent)
			return sent.Disposition
		}
		send("a", "hold 1")
		w.model.waitFor(t, "hold 1")
		want(t, "inline over the channel", send("b", "/queue steer now"), protocol.Disposition{Kind: "steered", RunID: "a"})
		want(t, "the channel over the base", send("c", "later"), protocol.Disposition{Kind: "queued", Position: 1})
		var e protocol.SessionExplained
		c.ok("sessions.explain", obj{"key": at}, &e)
		if len(e.Queue) != 2 || e.Queue[1].Mode != "collect" {
			t.Errorf("what waits: %+v", e.Queue)
		}
		if want := (protocol.ExplainedSettings{
			Channel: "slack", ChatType: "group", QueueMode: "collect", QueueDebounceMs: 2000, QueueCap: 7, QueueDrop: "summarize", Reset: "none",
		}); e.Settings != want || !strings.Contains(e.Text, "group chat of slack: queue collect, debounce 2000ms") {
			t.Errorf("explained %+v in\n%s", e.Settings, e.Text)
		}
		var d protocol.SessionDescribed
		c.ok("sessions.describe", obj{"key": at}, &d)
		if r := d.Session; r.EffectiveQueueMode != "collect" || *r.QueueDebounceMs != 2000 || *r.QueueCap != 7 {
			t.Errorf("described %+v", r)
		}
	})
}

// shifted is the machine's clock, ahead by what a test says.
type shifted struct {
	clock.System
	by atomic.Int64
}

func (s *shifted) Now() time.Time          { return time.Now().Add(time.Duration(s.by.Load())) }
func (s *shifted) forward(d time.Duration) { s.by.Add(int64(d)) }

// resetting is a world whose sessions start over by a policy, and its clock.
func resetting(t *testing.T, s table.Store, policy string) (*world, *shifted) {
	t.Helper()
	resets, err := session.ParseReset(policy)
	must(t, err)
	ahead := &shifted{}
	return setup(t, over(s), settings(func(s *wiring.Settings) { s.Reset, s.Clock = resets, ahead })), ahead
}

// TestRuntime33_ResetByTypeAndChannel: each session by the policy of its place, as its
// key tells it, and as explain shows it.
func TestRuntime33_ResetByTypeAndChannel(t *testing.T) {
	t.Parallel()
	rows := []struct{ name, key, reset, at30, at90 string }{
		{"the base", "agent:main:main", "idle:60", "", "idle"},
		{"a direct chat of a channel that says nothing", "agent:main:discord:direct:p", "idle:60", "", "idle"},
		{"the type", "agent:main:discord:group:g", "none", "", ""},
		{"the type, inheriting the mode", "agent:main:discord:group:g:thread:t", "idle:20", "idle", "idle"},
		{"the channel", "agent:main:slack:direct:p", "idle:10", "idle", "idle"},
		{"the channel over the type", "agent:main:slack:channel:c", "idle:10", "idle", "idle"},
	}
	backends.Each(t, func(t *testing.T, s table.Store) {
		w, ahead := resetting(t, s, "idle:60; type/group: none; type/thread: idleMinutes:20; channel/slack: idle:10")
		ids := map[string]string{}
		look := func(wave string, want func(i int) string) {
			t.Helper()
			c := w.user() // connections do not live as long as the test
			for i, row := range rows {
				c.says(row.key, wave+row.key, "hello "+wave)
				m := w.idle(row.key)
				switch before := ids[row.key]; {
				case before == "":
				case want(i) == "" && m.SessionID != before:
					t.Errorf("%s: started over after %s", row.name, wave)
				case want(i) != "" && (m.SessionID == before || m.PrevID != before):
					t.Errorf("%s: goes on after %s", row.name, wave)
				}
				ids[row.key] = m.SessionID
			}
		}
		look("0", nil)
		ahead.forward(30 * time.Minute)
		look("30", func(i int) string { return rows[i].at30 })
		ahead.forward(90 * time.Minute)
		look("90", func(i int) string { return rows[i].at90 })
		c := w.user()
		for _, row := range rows {
			var e protocol.SessionExplained
			c.ok("sessions.explain", obj{"key": row.key}, &e)
			if e.Settings.Reset != row.reset {
				t.Errorf("%s: %s, want %s", row.name, e.Settings.Reset, row.reset)
			}
		}
	})
}

// job runs one in the session "s".
func (c *client) job(message string) {
	c.t.Helper()
	var j protocol.CronJob
	c.ok("cron.add", hourly(obj{"sessionTarget": "session:s", "payload": obj{"kind": "agentTurn", "message": message}}), &j)
	c.ok("cron.run", obj{"id": j.ID}, nil)
}

// TestRuntime33_WhatKeepsASessionFresh: what a person writes, and nothing else.
func TestRuntime33_WhatKeepsASessionFresh(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		do   func(w *world, c *client)
		over bool
	}{
		{"nothing", func(*world, *client) {}, true},
		{"a chat message", func(w *world, c *client) {
			c.say("hello", "between", "")
			w.idle(key)
		}, false},
		{"a call of agent", func(w *world, c *client) {
			c.says("s", "between", "hello")
			w.idle(key)
		}, false},
		{"a reset", func(_ *world, c *client) { c.ok("sessions.reset", obj{"key": "s"}, nil) }, false},
		{"a job", func(w *world, c *client) {
			c.job("tidy up")
			w.model.waitFor(w.t, "tidy up")
			w.idle(key)
		}, true},
		{"an event", func(w *world, c *client) {
			c.ok("wake", obj{"mode": "now", "text": "look", "sessionKey": "s"}, nil)
			w.model.waitFor(w.t, "look")
			w.idle(key)
		}, true},
		{"a change of settings", func(_ *world, c *client) { c.ok("sessions.patch", obj{"key": "s", "queueMode": "collect"}, nil) }, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			backends.Each(t, func(t *testing.T, s table.Store) {
				w, ahead := resetting(t, s, "idle:60")
				c := w.user()
				c.says("s", "first", "the old story")
				before := w.idle(key)
				ahead.forward(50 * time.Minute)
				row.do(w, c)
				ahead.forward(50 * time.Minute)
				c.says("s", "last", "go on")
				if after := w.idle(key); (after.SessionID != before.SessionID) != row.over {
					t.Errorf("started over: %t, want %t", !row.over, row.over)
				}
			})
		})
	}
}

// TestRuntime33_AJobAtWorkDoesNotKeepASessionFresh: a message that comes meanwhile is
// not told to the job's run, which belongs to the past.
func TestRuntime33_AJobAtWorkDoesNotKeepASessionFresh(t *testing.T) {
	t.Parallel()
	backends.Each(t, func(t *testing.T, s table.Store) {
		w, ahead := resetting(t, s, "idle:60")
		c := w.user()
		c.says("s", "first", "the old story")
		before := w.idle(key)
		ahead.forward(2 * time.Hour)
		c = w.user() // connections do not live that long
		c.job("hold the job")
		w.model.waitFor(t, "hold the job")
		want(t, "in steer mode", c.say("a new day", "m1", ""), protocol.Disposition{Kind: "queued", Position: 1})
		c.say("and more", "m2", "followup")
		w.model.let("hold the job")
		c.waited("m2")
		after := w.idle(key)
		if after.SessionID == before.SessionID || after.PrevID != before.SessionID {
			t.Errorf("%s after %s, previous %s", after.SessionID, before.SessionID, after.PrevID)
		}
		if texts := w.model.texts(); strings.Join(texts, "|") != "a new day|you said a new day|and more" {
			t.Errorf("the model saw %q", texts)
		}
	})
}

// TestRuntime33_ATranscriptThatACallerNamesBeginsWithIt: its day is counted from there,
// not from the making of the session.
func TestRuntime33_ATranscriptThatACallerNamesBeginsWithIt(t *testing.T) {
	t.Parallel()
	backends.Each(t, func(t *testing.T, s table.Store) {
		w, ahead := resetting(t, s, "daily")
		c := w.user()
		c.says("s", "first", "the old story")
		w.idle(key)
		ahead.forward(25 * time.Hour)
		c = w.user()
		req := c.post("agent", obj{"sessionKey": "s", "sessionId": "mine", "message": "a new one", "idempotencyKey": "named"})
		c.answer(req, 2)
		w.idle(key)
		c.says("s", "last", "go on")
		if m := w.idle(key); m.SessionID != "mine" {
			t.Errorf("the session went on in %s", m.SessionID)
		}
	})
}
