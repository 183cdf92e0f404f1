package rpc

import (
	"context"
	"encoding/json"

	"laneway/shared/protocol"
	"laneway/shared/queue"
	"laneway/shared/session"
)

// Dead letters belong to the installation, not to a tenant: who may see those of all
// is an admin of the default one. Nothing is lost with a dead letter: the tables know
// its work, and the sweep wakes it.

const defaultLetters = 100

// deadLanes are the lanes that have dead letters; the empty one is the timers.
func deadLanes(named string) []queue.Lane {
	switch named {
	case "":
		var all []queue.Lane
		for _, d := range queue.Definitions() {
			all = append(all, d.Lane)
		}
		return append(all, "")
	case protocol.DLQTimers:
		return []queue.Lane{""}
	}
	return []queue.Lane{queue.Lane(named)}
}

func laneName(l queue.Lane) string {
	if l == "" {
		return protocol.DLQTimers
	}
	return string(l)
}

// letters is the store of dead letters, or why the caller cannot have it.
func (g *Gateway) letters(r *Request) (queue.DeadLetterStore, error) {
	if r.Tenant() != session.DefaultTenant {
		return nil, protocol.Invalid("dead letters are those of all tenants: only the default one may ask for them")
	}
	if g.Dead == nil {
		return nil, protocol.Unavailable("this gateway does not reach the dead-letter queues: use \"laneway dlq list --backend aws --stack NAME\", with AWS credentials")
	}
	return g.Dead, nil
}

func (g *Gateway) dlqList(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.DLQListParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	dead, err := g.letters(r)
	if err != nil {
		return err
	}
	limit := int(intOf(p.Limit, defaultLetters))
	out := protocol.DLQList{Letters: []protocol.DeadLetter{}}
	room := g.MaxReply - frameEnvelope
	for _, l := range deadLanes(p.Lane) {
		found, err := dead.DeadLetters(ctx, l, limit-len(out.Letters)+1)
		if err != nil {
			return err
		}
		for _, d := range found {
			row := DeadLetterRow(l, d)
			b, err := protocol.Marshal(row)
			if err != nil {
				return err
			}
			if room -= len(b) + 1; room < 0 || len(out.Letters) == limit {
				out.HasMore = true
				return r.Reply(out)
			}
			out.Letters = append(out.Letters, row)
		}
	}
	return r.Reply(out)
}

// DeadLetterRow is what is shown of a dead letter: whom it was for and why it was
// sent, never what it carries for clients.
func DeadLetterRow(l queue.Lane, d queue.DeadLetter) protocol.DeadLetter {
	var body struct {
		Kind   string `json:"kind"`
		Tenant string `json:"t"`
		Key    string `json:"k"`
		Reason string `json:"r"`
	}
	row := protocol.DeadLetter{ID: d.ID, Lane: laneName(l), Receives: d.Receives, Kind: "wake", Bytes: len(d.Body)}
	if !d.At.IsZero() {
		row.At = d.At.UnixMilli()
	}
	if json.Unmarshal(d.Body, &body) != nil {
		row.Kind = "unreadable"
		return row
	}
	if body.Kind != "" {
		row.Kind = body.Kind
	}
	row.Tenant, row.SessionKey = body.Tenant, body.Key
	if row.Kind == "wake" {
		row.Reason = body.Reason
	}
	return row
}

func (g *Gateway) dlqRetry(ctx context.Context, r *Request) error {
	return g.eachLetters(ctx, r, queue.DeadLetterStore.Redrive)
}

func (g *Gateway) dlqPurge(ctx context.Context, r *Request) error {
	return g.eachLetters(ctx, r, queue.DeadLetterStore.Purge)
}

func (g *Gateway) eachLetters(ctx context.Context, r *Request, do func(queue.DeadLetterStore, context.Context, queue.Lane) (int, error)) error {
	p, perr := protocol.Decode[protocol.DLQParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	dead, err := g.letters(r)
	if err != nil {
		return err
	}
	out := protocol.DLQDone{OK: true, Lanes: map[string]int{}}
	for _, l := range deadLanes(p.Lane) {
		n, err := do(dead, ctx, l)
		if err != nil {
			return err
		}
		out.Count += n
		out.Lanes[laneName(l)] = n
	}
	return r.Reply(out)
}
