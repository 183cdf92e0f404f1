package adapter_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"laneway/shared/clock/clocktest"
	"laneway/shared/connection"
	"laneway/shared/push"
	"laneway/shared/wiring"
)

// closing keeps what is posted and closed, in order.
type closing struct {
	push.Poster
	did []string
}

func (c *closing) Post(_ context.Context, _ push.Target, frame []byte) error {
	c.did = append(c.did, string(frame))
	return nil
}

func (c *closing) Close(_ context.Context, to push.Target) error {
	c.did = append(c.did, "close "+to.ConnectionID)
	return nil
}

// TestRuntime55_AuthRevoked_AConnectionOfAFunction: a client that was let in once would
// not end by itself, so it is told first and then its connection ends.
func TestRuntime55_AuthRevoked_AConnectionOfAFunction(t *testing.T) {
	t.Parallel()
	c := clocktest.New()
	s := setup(t, func(set *wiring.Settings) { set.Clock = c })
	posts := &closing{}
	s.socket.Poster = posts
	ev := sample[socketEvent](t, "gateway-message.json")
	id := ev.RequestContext.ConnectionID
	must(t, s.core.Connections.Open(t.Context(), connection.Row{ID: id, Nonce: "n"}))
	must(t, s.core.Connections.Ready(t.Context(), id, connection.Principal{Tenant: "default", Scopes: []string{"operator.admin"}, Token: "0123456789ab"}, connection.Client{}))
	ev.Body = `{"type":"req","id":"1","method":"health"}`
	res, err := s.socket.Handle(t.Context(), ev)
	if err != nil || !strings.Contains(res.Body, `"ok":true`) {
		t.Fatalf("while it is new: %+v, %v", res, err)
	}
	c.Advance(connection.CacheFor)
	res, err = s.socket.Handle(t.Context(), ev)
	if err != nil || res.Body != "" {
		t.Fatalf("%+v, %v", res, err)
	}
	if len(posts.did) != 2 || !strings.Contains(posts.did[0], "AUTH_TOKEN_MISMATCH") || !slices.Contains(posts.did[1:], "close "+id) {
		t.Errorf("did %q", posts.did)
	}
}
