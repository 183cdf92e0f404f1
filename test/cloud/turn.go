package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"laneway/shared/protocol"
	"laneway/shared/push"
	"laneway/test/mockmodel"
)

// turn is what one message did, from its frame to the end of the runner's invocation.
type turn struct {
	accept, run     invocation
	acceptCalls     []call
	runCalls        []call
	beforeAccepted  int // calls in a row
	beforeModel     int
	deliverAndClear float64 // requests of the mapping: a receive and a delete
}

// text is what the model streams in a call: two seconds of it.
func text() []string {
	pieces := make([]string, 20)
	for i := range pieces {
		pieces[i] = "word "
	}
	return pieces
}

const pieceMs = 100

// rounds is how many tool rounds a turn with tools has.
const rounds = 5

// script prepares the model's replies for one turn.
func (b *bench) script(tools bool) {
	plain := mockmodel.Reply{Text: text(), PauseMs: pieceMs}
	if !tools {
		b.model.Script(plain)
		return
	}
	for n := range rounds {
		// Each call differs from the others: a loop would be broken.
		b.model.Script(mockmodel.Reply{
			After: n > 0, Text: text(), PauseMs: pieceMs,
			Calls: []mockmodel.Call{{ID: "call_1", Name: "ls", Arguments: `{"path":"` + strings.Repeat("./", n+1) + `"}`}},
		})
	}
	plain.After = true
	b.model.Script(plain)
}

// turn plays one message in a session.
func (b *bench) turn(ctx context.Context, session string, tools bool) (turn, error) {
	var t turn
	b.script(tools)
	b.turns++
	asked := len(b.model.Requests())
	frame := b.frame("agent", protocol.AgentParams{
		Message: "Say something.", SessionKey: "agent:main:" + session, IdempotencyKey: fmt.Sprintf("bench-%d", b.turns),
	})
	b.wire.take()
	var err error
	if t.accept, err = b.gateway.invoke(ctx, frame); err != nil {
		return t, err
	}
	if !strings.Contains(string(t.accept.answer), `\"accepted\"`) {
		return t, fmt.Errorf("not accepted: %s", t.accept.answer)
	}
	// What a process reads once, at its start, is in the figure of its cold start.
	t.acceptCalls = slices.DeleteFunc(b.wire.take(), func(c call) bool { return c.About == "MODELS" })
	t.beforeAccepted = chain(t.acceptCalls, t.accept.end)
	event, err := b.next(ctx, b.lane)
	if err != nil {
		return t, err
	}
	if t.run, err = b.runner.invoke(ctx, event); err != nil {
		return t, err
	}
	if strings.Contains(string(t.run.answer), "itemIdentifier") {
		return t, fmt.Errorf("the runner failed: %s\n%s", t.run.answer, b.runner.log.Bytes())
	}
	t.runCalls = b.wire.take()
	requests := b.model.Requests()[asked:]
	want := 1
	if tools {
		want += rounds
	}
	if len(requests) != want {
		return t, fmt.Errorf("%d model requests, not %d", len(requests), want)
	}
	t.beforeModel = chain(t.runCalls, requests[0].At)
	t.deliverAndClear = 2
	return t, nil
}

// connect opens the connection: its row, the challenge by the timer, the client's
// answer with the token. It gives what that took.
func (b *bench) connect(ctx context.Context) ([]call, []invocation, error) {
	b.wire.take()
	opened, err := b.gateway.invoke(ctx, b.socket("CONNECT", "$connect", ""))
	if err != nil {
		return nil, nil, err
	}
	timer, err := b.next(ctx, b.timers)
	if err != nil {
		return nil, nil, err
	}
	told, err := b.notifier.invoke(ctx, timer)
	if err != nil {
		return nil, nil, err
	}
	hello, err := b.gateway.invoke(ctx, b.frame("connect", protocol.ConnectParams{
		MinProtocol: protocol.Version, MaxProtocol: protocol.Version,
		Client: protocol.ConnectClient{ID: "cli", Version: "1", Platform: "linux", Mode: "cli"},
		Auth:   &protocol.ConnectAuth{Token: b.token},
	}))
	if err != nil {
		return nil, nil, err
	}
	if !strings.Contains(string(hello.answer), `hello-ok`) {
		return nil, nil, fmt.Errorf("not connected: %s", hello.answer)
	}
	return b.wire.take(), []invocation{opened, told, hello}, nil
}

// close is the $disconnect.
func (b *bench) close(ctx context.Context) ([]call, invocation, error) {
	b.wire.take()
	i, err := b.gateway.invoke(ctx, b.socket("DISCONNECT", "$disconnect", ""))
	return b.wire.take(), i, err
}

// frame is the event of a request of the client.
func (b *bench) frame(method string, params any) []byte {
	b.frames++
	body, err := json.Marshal(map[string]any{"type": "req", "id": strconv.Itoa(b.frames), "method": method, "params": params})
	if err != nil {
		panic(err) // plain structs
	}
	return b.socket("MESSAGE", "$default", string(body))
}

// socket is an event of the WebSocket API.
func (b *bench) socket(kind, route, body string) []byte {
	event, err := json.Marshal(map[string]any{
		"requestContext": map[string]any{
			"routeKey": route, "eventType": kind, "connectionId": fmt.Sprintf("bench-%d", b.connections), "apiId": "bench", "stage": "live",
			"domainName": "bench.execute-api.us-east-1.amazonaws.com", "requestTimeEpoch": time.Now().UnixMilli(),
		},
		"body": body,
	})
	if err != nil {
		panic(err)
	}
	return event
}

// errNothing is a queue in which nothing is.
var errNothing = errors.New("no message came")

// next takes the next message of a queue and makes the event of a mapping of it.
func (b *bench) next(ctx context.Context, url string) ([]byte, error) {
	for range 5 {
		out, err := b.sqs.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: 1, WaitTimeSeconds: 2,
			MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
		})
		if err != nil {
			return nil, err
		}
		if len(out.Messages) == 0 {
			continue
		}
		m := out.Messages[0]
		if _, err := b.sqs.DeleteMessage(ctx, &awssqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
			return nil, err
		}
		return json.Marshal(map[string]any{"Records": []any{map[string]any{
			"messageId": aws.ToString(m.MessageId), "receiptHandle": aws.ToString(m.ReceiptHandle), "body": aws.ToString(m.Body),
			"attributes": m.Attributes, "eventSource": "aws:sqs", "awsRegion": "us-east-1",
		}}})
	}
	return nil, fmt.Errorf("%s: %w", url, errNothing)
}

// units is the API Gateway messages of what was posted.
func units(calls []call) (posts int, messages float64) {
	for _, c := range calls {
		if c.Service == "@connections" {
			posts++
			messages += push.Units(c.Bytes)
		}
	}
	return posts, messages
}
