package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"laneway/shared/protocol"
	"laneway/shared/session"
	"laneway/shared/transcript"
)

const (
	defaultHistory = 200  // messages of a page
	defaultChars   = 8000 // characters that are shown of one text
	historyTries   = 3    // a picture is taken again where a message moved meanwhile
)

func (g *Gateway) chatHistory(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.ChatHistoryParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	return g.history(ctx, r, &p)
}

// chatStartup is chat.history, also by the start of a session id.
func (g *Gateway) chatStartup(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.ChatStartupParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	if p.ShortID != "" {
		key, err := g.byShortID(ctx, r.Tenant(), p.AgentID, p.ShortID)
		if err != nil {
			return err
		}
		if key == "" {
			return protocol.NoSession(p.ShortID)
		}
		p.SessionKey = key
	}
	h := p.History()
	return g.history(ctx, r, &h)
}

// history answers with the newest messages, those before an offset, or, for a
// cursor, those that came after it. A message that was accepted is in it from the
// accept on, as an input that waits or as a row (A4).
func (g *Gateway) history(ctx context.Context, r *Request, p *protocol.ChatHistoryParams) error {
	ref, agent, err := g.sessionRef(ctx, r, p.SessionKey, p.AgentID)
	if err != nil {
		return err
	}
	agents, err := g.Directory.Agents(ctx, r.Tenant())
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		v, err := g.view(ctx, ref)
		if err != nil {
			return err
		}
		in, err := g.inputs(ctx, &v.m)
		if err != nil {
			return err
		}
		if in.moved && n < historyTries {
			continue
		}
		row, err := g.sessionRow(ctx, &v, agents)
		if err != nil {
			return err
		}
		out := protocol.History{
			SessionKey: ref.Key, SessionID: v.m.SessionID, Messages: []protocol.HistoryRow{},
			Defaults: defaults(agents, agent), SessionInfo: &row,
		}
		if !v.exists() {
			out.SessionID, row.SessionID, row.CreatedAt, row.UpdatedAt = "", "", 0, nil
			row.LastInteractionAt = 0
		}
		out.PendingInputs = in.pending(g.chars(p.MaxChars), g.MaxReply/4)
		reply, err := g.fill(ctx, &v.m, in, p, out)
		if err != nil {
			return err
		}
		return r.Reply(reply)
	}
}

func (g *Gateway) chars(n *int64) int { return int(intOf(n, defaultChars)) }

// fill puts the rows into a reply.
func (g *Gateway) fill(ctx context.Context, m *session.Meta, in inputs, p *protocol.ChatHistoryParams, out protocol.History) (any, error) {
	span, err := g.Log.Span(ctx, m, p.SessionID)
	if err != nil {
		return nil, err
	}
	envelope, err := protocol.Marshal(out)
	if err != nil {
		return nil, err
	}
	b := &book{
		limit: int(intOf(p.Limit, defaultHistory)), chars: g.chars(p.MaxChars),
		room: g.MaxReply - len(envelope) - frameEnvelope,
	}
	if p.MaxBytes != nil {
		b.room = min(b.room, int(min(*p.MaxBytes, int64(g.MaxReply))))
	}
	if p.Cursor != "" {
		return g.since(ctx, m, span, b, p, out)
	}
	out.TotalMessages = span.Last - span.Floor
	end := span.Last - intOf(p.Offset, 0)
	if intOf(p.Offset, 0) == 0 && out.SessionID != "" && span.SessionID == out.SessionID {
		out.DeltaCursor = cursor{m.SessionID, span.Floor, span.Last}.String()
		if st := in.active; st != nil {
			row := userRow(st)
			row.Openclaw.Seq = out.TotalMessages + 1
			if _, err := b.add(row); err != nil {
				return nil, err
			}
		}
	}
	first, err := g.fillBook(ctx, m.Ref, span, end, b)
	if err != nil {
		return nil, err
	}
	if out.HasMore = first > span.Floor+1; out.HasMore {
		out.NextOffset = span.Last - first + 1
	}
	out.Messages = b.oldestFirst()
	return out, nil
}

// frameEnvelope is room for what stands around a payload in a frame.
const frameEnvelope = 1 << 10

// fillBook adds rows up to end, newest first, until the book is full or the
// session's beginning is reached. It gives the sequence of the oldest row that was
// looked at.
func (g *Gateway) fillBook(ctx context.Context, ref session.Ref, span transcript.Span, end int64, b *book) (int64, error) {
	first := end + 1
	for step := int64(64); first > span.Floor+1 && !b.full(); step *= 2 {
		to := first - 1
		rows, err := g.Log.Range(ctx, ref, span.SessionID, max(span.Floor+1, to-step+1), to)
		if err != nil {
			return 0, err
		}
		for i := len(rows) - 1; i >= 0 && !b.full(); i-- {
			e := &rows[i]
			if e.Type == transcript.Reset {
				return span.Floor + 1, nil // behind a compaction: nothing before it is shown
			}
			if shown(e) {
				row := historyRow(e, b.chars)
				row.Openclaw.Seq = e.Seq - span.Floor
				fits, err := b.add(row)
				if err != nil || !fits {
					return first, err
				}
			}
			first = e.Seq
		}
	}
	return first, nil
}

// cursor says up to where a client knows a session.
type cursor struct {
	sessionID   string
	floor, last int64
}

func (c cursor) String() string {
	return fmt.Sprintf("%d.%d.%s", c.floor, c.last, c.sessionID)
}

func parseCursor(s string) (cursor, bool) {
	part := strings.SplitN(s, ".", 3)
	if len(part) != 3 {
		return cursor{}, false
	}
	floor, err1 := strconv.ParseInt(part[0], 10, 64)
	last, err2 := strconv.ParseInt(part[1], 10, 64)
	return cursor{part[2], floor, last}, err1 == nil && err2 == nil && floor >= 0 && last >= floor
}

// since answers a cursor: with what came after it, or, where that is another
// transcript or too much for one reply, with "start over".
func (g *Gateway) since(ctx context.Context, m *session.Meta, span transcript.Span, b *book, p *protocol.ChatHistoryParams, full protocol.History) (any, error) {
	c, ok := parseCursor(p.Cursor)
	if !ok || c.sessionID != span.SessionID || c.floor != span.Floor || c.last > span.Last {
		return protocol.HistoryReset{Kind: "reset"}, nil
	}
	first, err := g.fillBook(ctx, m.Ref, transcript.Span{SessionID: span.SessionID, Floor: c.last, Last: span.Last}, span.Last, b)
	if err != nil {
		return nil, err
	}
	if first > c.last+1 {
		return protocol.HistoryReset{Kind: "reset"}, nil
	}
	rows := b.oldestFirst()
	for i := range rows {
		rows[i].Openclaw.Seq += c.last - span.Floor
	}
	return protocol.HistoryDelta{
		Kind: "delta", Messages: rows, DeltaCursor: cursor{span.SessionID, span.Floor, span.Last}.String(),
		SessionInfo: full.SessionInfo, PendingInputs: full.PendingInputs,
	}, nil
}

// book collects rows of one reply, newest first, as long as there is room.
type book struct {
	limit, chars, room int
	rows               []protocol.HistoryRow
	over               bool
}

func (b *book) full() bool { return b.over || len(b.rows) >= b.limit }

// add takes a row if there is room. The first one is always taken: what does not fit
// of it is cut.
func (b *book) add(row protocol.HistoryRow) (bool, error) {
	size, err := sizeOf(row)
	if err != nil {
		return false, err
	}
	if size > b.room {
		if b.over = true; len(b.rows) > 0 {
			return false, nil
		}
		row = cutRow(row, max(b.room, minRow))
		size = b.room
	}
	b.room -= size
	b.rows = append(b.rows, row)
	return true, nil
}

func (b *book) oldestFirst() []protocol.HistoryRow {
	out := make([]protocol.HistoryRow, 0, len(b.rows))
	for _, row := range slices.Backward(b.rows) {
		out = append(out, row)
	}
	return out
}

func sizeOf(row protocol.HistoryRow) (int, error) {
	b, err := json.Marshal(row)
	return len(b) + 1, err
}

// defaults is the model of sessions that choose none.
func defaults(agents []Agent, agent string) *protocol.HistoryDefaults {
	for _, a := range agents {
		if a.ID == agent {
			return &protocol.HistoryDefaults{ModelProvider: a.Provider, Model: a.Model, ContextTokens: a.ContextTokens}
		}
	}
	return nil
}
