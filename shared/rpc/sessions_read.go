package rpc

import (
	"context"

	"laneway/shared/chars"
	"laneway/shared/protocol"
	"laneway/shared/session"
)

// sessionsGet gives the newest messages of a session.
func (g *Gateway) sessionsGet(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.SessionsGetParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	ref, _, err := g.sessionRef(ctx, r, p.Key, p.AgentID)
	if err != nil {
		return err
	}
	m, err := session.LoadMeta(ctx, g.Store, ref)
	if err != nil {
		return err
	}
	b := &book{limit: int(intOf(p.Limit, defaultHistory)), chars: defaultChars, room: g.MaxReply - frameEnvelope}
	span, err := g.Log.Span(ctx, &m, "")
	if err != nil {
		return err
	}
	if _, err := g.fillBook(ctx, ref, span, span.Last, b); err != nil {
		return err
	}
	return r.Reply(protocol.SessionMessages{Messages: b.oldestFirst()})
}

const (
	defaultPreview = 12  // texts of one session
	maxPreview     = 50  // most of them
	previewRows    = 200 // rows that are looked through for them
)

// sessionsPreview gives the last few texts of several sessions. All of them share
// one reply: each gets an equal part of it.
func (g *Gateway) sessionsPreview(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.SessionsPreviewParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	room := (g.MaxReply - frameEnvelope) / len(p.Keys)
	out := protocol.SessionsPreview{TS: g.Clock.Now().UnixMilli(), Previews: []protocol.SessionPreview{}}
	for _, raw := range p.Keys {
		one := protocol.SessionPreview{Key: raw, Status: "missing", Items: []protocol.PreviewItem{}}
		if key, _, err := session.Key(raw, ""); err == nil {
			v, err := g.view(ctx, session.Ref{Tenant: r.Tenant(), Key: key})
			if err != nil {
				return err
			}
			if v.exists() {
				limit := int(min(intOf(p.Limit, defaultPreview), maxPreview))
				if one.Items, err = g.lastTexts(ctx, &v.m, limit, int(min(intOf(p.MaxChars, previewChars), defaultChars)), room-len(raw)-minRow/2); err != nil {
					return err
				}
				if one.Status = "ok"; len(one.Items) == 0 {
					one.Status = "empty"
				}
			}
		}
		out.Previews = append(out.Previews, one)
	}
	return r.Reply(out)
}

// lastTexts is the last texts of a session, oldest first, in at most room bytes.
func (g *Gateway) lastTexts(ctx context.Context, m *session.Meta, limit, most, room int) ([]protocol.PreviewItem, error) {
	out := []protocol.PreviewItem{}
	span, err := g.Log.Span(ctx, m, "")
	if err != nil {
		return nil, err
	}
	rows, err := g.Log.Range(ctx, m.Ref, span.SessionID, max(span.Floor+1, span.Last-previewRows+1), span.Last)
	if err != nil {
		return nil, err
	}
	for i := len(rows) - 1; i >= 0 && len(out) < limit; i-- {
		text := chars.Head(messageText(&rows[i]), most)
		if text == "" {
			continue
		}
		if room -= protocol.EncodedLen(text) + 40; room < 0 {
			break
		}
		out = append([]protocol.PreviewItem{{Role: string(rows[i].Role), Text: text}}, out...)
	}
	return out, nil
}

// lastMessage is the last text of a session in one line.
func (g *Gateway) lastMessage(ctx context.Context, v *view) (string, error) {
	items, err := g.lastTexts(ctx, &v.m, 1, defaultChars, g.MaxReply)
	if err != nil || len(items) == 0 {
		return "", err
	}
	return oneLine(items[0].Text), nil
}
