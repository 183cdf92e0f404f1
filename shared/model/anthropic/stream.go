package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"laneway/shared/model"
	"laneway/shared/model/wire"
)

// event is any event of the stream; Type says which fields are set.
type (
	event struct {
		Type    string `json:"type"`
		Index   int    `json:"index"`
		Message struct {
			Usage *usage `json:"usage"`
		} `json:"message"`
		ContentBlock started `json:"content_block"`
		Delta        delta   `json:"delta"`
		Usage        *usage  `json:"usage"`
	}
	started struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
		Input     json.RawMessage `json:"input"`
	}
	delta struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		StopReason  string `json:"stop_reason"`
	}
	// usage counts so far; a later one replaces what it names.
	usage struct {
		Input      *int64 `json:"input_tokens"`
		Output     *int64 `json:"output_tokens"`
		CacheRead  *int64 `json:"cache_read_input_tokens"`
		CacheWrite *int64 `json:"cache_creation_input_tokens"`
	}
)

// open is a content block that is being streamed.
type open struct {
	kind      string
	id, name  string
	thinking  []byte
	signature string
	input     []byte
	whole     json.RawMessage // input that came with the start
}

// decoder turns one response into parts.
type decoder struct {
	failure model.Failure
	ctx     context.Context //nolint:containedctx // lives as long as the call of Stream that made it
	yield   func(model.Part, error) bool

	blocks map[int]*open
	calls  []*open // tool calls in the order in which they began
	usage  model.Usage
	stop   string
	said   bool // some text was given
	begun  bool // the server sent something
	ended  bool // message_stop came
}

// run reads the stream and says whether the message ended as it should, with Done
// given.
func (d *decoder) run(body io.Reader) bool {
	d.blocks = make(map[int]*open)
	events := wire.NewEvents(body, model.Progress(d.ctx))
	for !d.ended {
		ev, err := events.Next()
		if errors.Is(err, io.EOF) && !d.begun && d.ctx.Err() == nil {
			return d.fail(d.failure.Fail(model.EmptyResponse))
		}
		if err != nil && (d.stop == "" || d.ctx.Err() != nil) {
			return d.fail(d.failure.Cut(d.ctx, err))
		}
		if err != nil {
			break // cut after the reason to stop: the message is whole
		}
		d.begun = true
		if !d.event(ev.Data) {
			return false
		}
	}
	return d.end()
}

// event handles one event; false ends the reading.
func (d *decoder) event(data []byte) bool {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); !ok {
			return d.fail(d.failure.Fail(model.FromFinishReason("malformed_response")))
		}
	}
	switch e.Type {
	case "message_start":
		return d.count(e.Message.Usage)
	case "content_block_start":
		return d.start(e.Index, e.ContentBlock)
	case "content_block_delta":
		return d.delta(e.Index, &e.Delta)
	case "content_block_stop":
		return d.close(e.Index)
	case "message_delta":
		if e.Delta.StopReason != "" {
			d.stop = e.Delta.StopReason
		}
		return d.count(e.Usage)
	case "message_stop":
		d.ended = true
	case "error":
		d.failure.Code, d.failure.Text = describe(data)
		return d.fail(d.failure.Classified())
	}
	return true // ping, and whatever may be added later
}

func (d *decoder) start(index int, s started) bool {
	b := &open{kind: s.Type, id: s.ID, name: s.Name, signature: s.Signature}
	d.blocks[index] = b
	switch s.Type {
	case "text":
		return d.text(s.Text)
	case "thinking":
		return d.think(b, s.Thinking)
	case "redacted_thinking":
		b.signature = redacted + s.Data
	case "tool_use":
		b.whole = s.Input
		d.calls = append(d.calls, b)
	}
	return true
}

func (d *decoder) delta(index int, dl *delta) bool {
	b := d.blocks[index]
	if b == nil {
		// A delta without its start: some proxies leave it out for text.
		b = &open{kind: "text"}
		d.blocks[index] = b
	}
	switch dl.Type {
	case "text_delta":
		return d.text(dl.Text)
	case "thinking_delta":
		return d.think(b, dl.Thinking)
	case "signature_delta":
		b.signature += dl.Signature
	case "input_json_delta":
		b.input = append(b.input, dl.PartialJSON...)
	}
	return true
}

func (d *decoder) text(s string) bool {
	if s == "" {
		return true
	}
	d.said = true
	return d.give(model.Part{Text: s})
}

func (d *decoder) think(b *open, s string) bool {
	if s == "" {
		return true
	}
	b.thinking = append(b.thinking, s...)
	return d.give(model.Part{Thinking: s})
}

// close ends a block. Tool calls wait until it is known why the message stopped:
// at the token limit the API closes a call that is cut, too.
func (d *decoder) close(index int) bool {
	b := d.blocks[index]
	delete(d.blocks, index)
	if b == nil || b.signature == "" || (b.kind != "thinking" && b.kind != "redacted_thinking") {
		return true
	}
	return d.give(model.Part{ThinkingDone: &model.Block{
		Type: model.Thinking, Thinking: string(b.thinking), Signature: b.signature,
	}})
}

func (d *decoder) count(u *usage) bool {
	if u == nil {
		return true
	}
	for _, f := range [...]struct {
		from *int64
		to   *int64
	}{{u.Input, &d.usage.Input}, {u.Output, &d.usage.Output}, {u.CacheRead, &d.usage.CacheRead}, {u.CacheWrite, &d.usage.CacheWrite}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	d.usage.Total = d.usage.Input + d.usage.Output + d.usage.CacheRead + d.usage.CacheWrite
	now := d.usage
	return d.give(model.Part{Usage: &now})
}

// end judges what came and gives the tool calls and Done, or an error.
func (d *decoder) end() bool {
	reason := stopReason(d.stop)
	if reason == "refusal" {
		d.calls = nil // what was refused must not be done either
	}
	seen := make(map[string]bool)
	given := 0
	for _, c := range d.calls {
		args := c.input
		if len(args) == 0 {
			args = c.whole
		}
		if reason == "length" && (len(c.input) == 0 || !json.Valid(args)) {
			continue // cut
		}
		if c.name == "" || c.id == "" || seen[c.id] {
			return d.fail(d.failure.Fail(model.FromFinishReason("malformed_response")))
		}
		seen[c.id] = true
		given++
		if !d.give(model.Part{ToolCall: &model.Block{
			Type: model.ToolCall, ID: c.id, Name: c.name, Arguments: model.Args(string(args)),
		}}) {
			return false
		}
	}
	if reason == "stop" {
		switch {
		case given > 0:
			reason = "toolUse"
		case !d.said && d.stop != "pause_turn":
			return d.fail(d.failure.Fail(model.EmptyResponse))
		}
	}
	return d.give(model.Part{Done: &model.Done{StopReason: reason, Raw: d.stop}})
}

// stopReason maps the API's word. A pause is for tools that run at the provider,
// which are never asked for here, so it is a stop.
func stopReason(s string) string {
	switch s {
	case "max_tokens", "model_context_window_exceeded":
		return "length"
	case "refusal":
		return "refusal"
	}
	return "stop" // end_turn, stop_sequence, tool_use, pause_turn, none
}

// give is false when the consumer has left.
func (d *decoder) give(p model.Part) bool { return d.yield(p, nil) }

// fail gives the error that ends the stream; always false.
func (d *decoder) fail(err *model.Error) bool {
	d.yield(model.Part{}, err)
	return false
}
