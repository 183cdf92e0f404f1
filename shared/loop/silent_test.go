package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"laneway/shared/connection"
	"laneway/shared/model"
	"laneway/shared/rpc"
	"laneway/shared/session"
	"laneway/shared/token"
)

// TestF19_EverySplitOfTheSilentToken: no event has a piece of it, the run ends ok
// without a payload, history for clients has no such message, the transcript keeps it.
func TestF19_EverySplitOfTheSilentToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, chat := w.connect(), w.connect()
	must(t, w.gw.core.Connections.Subscribe(t.Context(), chat.id, key))
	p := w.process(nil)
	const token = "NO_REPLY"
	n := 0
	silent := func(deltas ...string) {
		t.Helper()
		n++
		id := fmt.Sprint("r", n)
		w.model.by(func(model.Request) answerFunc { return say(deltas...) })
		w.accept(c, id, "hi")
		p.serve()
		f := w.reply(c, id)
		if str(f, "payload.status") != "ok" || text(f) != "" || strings.Contains(fmt.Sprint(f), "NO") {
			t.Errorf("%q: final %v", deltas, f)
		}
		rows := w.rows()
		if last := rows[len(rows)-1]; !last.Silent || last.Text() != strings.Join(deltas, "") {
			t.Errorf("%q: row %+v", deltas, last)
		}
	}
	for mask := range 1 << (len(token) - 1) {
		var deltas []string
		from := 0
		for i := 1; i < len(token); i++ {
			if mask&(1<<(i-1)) != 0 {
				deltas = append(deltas, token[from:i])
				from = i
			}
		}
		silent(append(deltas, token[from:])...)
	}
	silent("NO", "_RE", "PLY\n")
	silent("**NO_REPLY**")
	for _, cl := range []*client{c, chat} {
		if got := cl.all(event("agent", "assistant", "")); len(got) != 0 {
			t.Errorf("assistant events: %v", got[0])
		}
		if got := cl.all(event("chat", "", "delta")); len(got) != 0 {
			t.Errorf("chat deltas: %v", got[0])
		}
	}
	finals := chat.all(event("chat", "", "final"))
	if len(finals) != n {
		t.Errorf("%d chat finals of %d", len(finals), n)
	}
	for _, f := range finals {
		if pl, _ := f["payload"].(map[string]any); pl["message"] != nil {
			t.Errorf("chat final %v", f)
		}
	}
	if got := w.history(); strings.Contains(got, "NO_") || strings.Count(got, `"role":"user"`) == 0 || strings.Contains(got, `"role":"assistant"`) {
		t.Errorf("history: %.600s", got)
	}
}

// TestF19_WhatOnlyBeginsLikeTheTokenIsStreamedWhole.
func TestF19_WhatOnlyBeginsLikeTheTokenIsStreamedWhole(t *testing.T) {
	t.Parallel()
	for _, deltas := range [][]string{
		{"No", ", I cannot"},
		{"N", "ew York"},
		{"NO_REPLYING is a word"},
		{"NO", "_REP", "LYING is a word"},
		{"N", "O", " WAY"},
	} {
		w := newWorld(t)
		c := w.connect()
		w.model.on(say(deltas...))
		w.accept(c, "r1", "hi")
		w.process(nil).serve()
		want := strings.Join(deltas, "")
		if got := text(w.reply(c, "r1")); got != want {
			t.Errorf("%q: final %q", deltas, got)
		}
		if got := (&story{world: w, c: c}).shown("r1"); got != want {
			t.Errorf("%q: shown %q", deltas, got)
		}
		if rows := w.rows(); rows[1].Silent || rows[1].Text() != want {
			t.Errorf("%q: row %+v", deltas, rows[1])
		}
	}
}

// history is chat.history as a client gets it.
func (w *world) history() string {
	w.t.Helper()
	gw, err := rpc.New(rpc.Config{
		Store: w.store, Connections: w.gw.core.Connections, Lanes: w.gw.core.Lanes, Claims: w.gw.core.Claims, Notify: w.gw.core.Notify,
		Log: w.gw.core.Transcripts, Auth: &token.Store{Table: w.store}, Directory: oneAgent{}, Clock: w.clock, Logger: slog.New(slog.DiscardHandler),
	})
	must(w.t, err)
	must(w.t, w.gw.core.Connections.Open(w.t.Context(), connection.Row{ID: "reader", Nonce: "n"}))
	must(w.t, w.gw.core.Connections.Ready(w.t.Context(), "reader", connection.Principal{Tenant: session.DefaultTenant, Scopes: []string{"operator.admin"}}, connection.Client{}))
	body, err := json.Marshal(map[string]any{"type": "req", "id": "1", "method": "chat.history", "params": map[string]any{"sessionKey": key, "limit": 1000}})
	must(w.t, err)
	var got string
	gw.Serve(w.t.Context(), &rpc.Frame{ConnectionID: "reader", Body: body, Send: func(f []byte) { got += string(f) }})
	return got
}

// oneAgent is a directory.
type oneAgent struct{}

func (oneAgent) Agents(context.Context, string) ([]rpc.Agent, error) {
	return []rpc.Agent{{ID: "main"}}, nil
}

func (oneAgent) Models(context.Context, string) ([]model.Info, error) { return nil, nil }
