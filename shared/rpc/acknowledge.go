package rpc

import (
	"context"

	"laneway/shared/lane"
	"laneway/shared/protocol"
	"laneway/shared/push"
	"laneway/shared/run"
)

// modeUI is what clients with a screen say that they are.
const modeUI = "ui"

// acknowledge tells a client with a screen that a message waits. The stock terminal
// client takes no further message before it has seen an event of the last one's run,
// and that of a message that waits may be minutes away. It goes through the timers: read
// together with the reply, the event would be seen before it. The phase is one that
// clients may ignore, and the event is none of the run's own: it has no number.
func (g *Gateway) acknowledge(ctx context.Context, r *Request, st run.Status) {
	if r.Conn.Client.Mode != modeUI || st.Disposition.Kind == lane.IsStarted {
		return
	}
	b, err := protocol.AppendEvent(nil, protocol.EventAgent, map[string]any{
		"runId": st.RunID, "sessionKey": st.SessionKey, "agentId": st.AgentID, "stream": protocol.StreamLifecycle,
		"data": map[string]any{"phase": st.Disposition.Kind}, "seq": 0, "ts": st.AcceptedAt,
	})
	if err == nil {
		err = g.Notify.PostLater(ctx, push.Target{ConnectionID: r.Conn.ID, Callback: r.Conn.Callback}, [][]byte{b})
	}
	if err != nil {
		g.Logger.Warn("message that waits not acknowledged", "run", st.Ref.Run, "err", err)
	}
}
