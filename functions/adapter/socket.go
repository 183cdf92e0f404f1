// Package adapter turns the events of AWS into calls of the services. The functions
// use it, and so does the single-machine edition, which makes the same events.
//
// Guarantees: no event, well-formed or not, makes an adapter panic; an event of
// another kind is an error that says so; nothing is posted to a connection from
// inside its $connect.
package adapter

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"laneway/shared/protocol"
	"laneway/shared/push"
	"laneway/shared/push/apigw"
	"laneway/shared/rpc"
)

// Socket serves the WebSocket API.
type Socket struct {
	Gateway *rpc.Gateway
	// Poster sends what does not fit into the route response. Handle needs it.
	Poster push.Poster
	// Later takes frames that could not be posted; nil: then the event fails.
	Later func(ctx context.Context, to push.Target, frames [][]byte) error
	// Endpoint is AWS_ENDPOINT_URL where an endpoint stands for AWS.
	Endpoint string
	// Callback is where connections are posted to that did not come through API
	// Gateway; empty: to this process.
	Callback string
}

// Out is where frames go on one machine; its zero value collects them for the route
// response.
type Out struct {
	Send    func(frame []byte)
	Closing func(code int, reason string)
}

// Errors of events that cannot be served.
var (
	ErrEvent = errors.New("adapter: not an event of the WebSocket API")
)

// Handle serves an event as a function does: the first frame is the route's
// response, more are posted.
func (s *Socket) Handle(ctx context.Context, ev events.APIGatewayWebsocketProxyRequest) (events.APIGatewayProxyResponse, error) {
	var frames [][]byte
	end := false // by itself it would not: it was let in once
	out := Out{
		Send: func(frame []byte) { frames = append(frames, frame) },
		// The client closes by itself after a refusal; deleting the connection here
		// could overtake the response that says why.
		Closing: func(code int, _ string) { end = code == protocol.CloseAuthChanged },
	}
	if err := s.Serve(ctx, ev, out); err != nil {
		return events.APIGatewayProxyResponse{StatusCode: http.StatusInternalServerError}, err
	}
	if s.Poster == nil && len(frames) > 1 {
		return events.APIGatewayProxyResponse{StatusCode: http.StatusInternalServerError}, errors.New("adapter: Socket has no Poster")
	}
	res := events.APIGatewayProxyResponse{StatusCode: http.StatusOK}
	to := push.Target{ConnectionID: ev.RequestContext.ConnectionID, Callback: s.callback(ev)}
	if end && s.Poster != nil {
		return res, errors.Join(s.post(ctx, to, frames), s.Poster.Close(ctx, to))
	}
	if len(frames) > 0 {
		res.Body = string(frames[0])
		frames = frames[1:]
	}
	return res, s.post(ctx, to, frames)
}

// post sends frames behind the response: a client takes replies in any order, by
// their ids.
func (s *Socket) post(ctx context.Context, to push.Target, frames [][]byte) error {
	for i, f := range frames {
		err := s.Poster.Post(ctx, to, f)
		switch {
		case err == nil:
		case errors.Is(err, push.ErrGone):
			return nil // its $disconnect is on the way
		case s.Later != nil:
			return s.Later(ctx, to, frames[i:])
		default:
			return err
		}
	}
	return nil
}

func (s *Socket) callback(ev events.APIGatewayWebsocketProxyRequest) string {
	c := ev.RequestContext
	if c.APIID == "" {
		return s.Callback // not API Gateway
	}
	return apigw.CallbackFor(c.DomainName, c.Stage, c.APIID, s.Endpoint)
}

// Serve serves an event; what it has to say goes to out.
func (s *Socket) Serve(ctx context.Context, ev events.APIGatewayWebsocketProxyRequest, out Out) error {
	c := ev.RequestContext
	if c.ConnectionID == "" {
		return ErrEvent
	}
	switch c.EventType {
	case "CONNECT":
		return s.Gateway.Opened(ctx, c.ConnectionID, s.callback(ev))
	case "DISCONNECT":
		return s.Gateway.Closed(ctx, c.ConnectionID)
	case "MESSAGE":
	default:
		return ErrEvent
	}
	body := []byte(ev.Body)
	if ev.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(ev.Body); err != nil {
			return ErrEvent
		}
	}
	s.Gateway.Serve(ctx, &rpc.Frame{
		ConnectionID: c.ConnectionID, Callback: s.callback(ev), Body: body, At: frameTime(ev), Send: out.Send, Closing: out.Closing,
	})
	return nil
}

// frameTime is when a frame came in, in µs. API Gateway says it in ms; the edition
// on one machine, which knows the order of a connection's frames, in µs.
func frameTime(ev events.APIGatewayWebsocketProxyRequest) int64 {
	at := ev.RequestContext.RequestTimeEpoch
	const microsFrom = 1e14 // of this order are µs, of 1e12 ms
	if at < microsFrom {
		at *= 1000
	}
	return at
}
