package rpc

import (
	"context"
	"encoding/json"

	"laneway/shared/protocol"
)

// uploadsCreate gives a client a place for what is too large for a frame.
func (g *Gateway) uploadsCreate(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.UploadsCreateParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	created, err := g.Files.Create(ctx, r.Tenant(), p)
	if err != nil {
		return err
	}
	return r.Reply(created)
}

// attached is a message's files as the run's record has them: stored, with what they
// are known by.
func (g *Gateway) attached(ctx context.Context, r *Request, list []protocol.Attachment) (json.RawMessage, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if g.Files == nil {
		return nil, protocol.InvalidParams(r.Method, "at /attachments: files are not taken here")
	}
	return g.Files.Attach(ctx, r.Tenant(), r.Method, list)
}
