package openai

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"

	"laneway/shared/model"
	"laneway/shared/model/wire"
)

// decoder turns one response into parts.
type decoder struct {
	provider *Provider
	request  model.Request
	ctx      context.Context //nolint:containedctx // lives as long as the call of Stream that made it
	yield    func(model.Part, error) bool

	calls    calls
	finish   string
	chunks   int
	said     bool // some text was given
	done     bool // the server said [DONE], or sent a whole answer
	stopped  bool // the consumer left
	transmit error
}

// run reads the response to its end and says whether the message ended as it
// should, with Done given.
func (d *decoder) run(res *http.Response) bool {
	if media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); media == "application/json" {
		d.whole(res.Body)
	} else {
		d.events(res.Body)
	}
	if d.stopped {
		return false
	}
	return d.end()
}

// events reads the stream until [DONE], its end or a failure.
func (d *decoder) events(body io.Reader) {
	events := wire.NewEvents(body, model.Progress(d.ctx))
	for {
		ev, err := events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			d.transmit = err
			return
		case bytes.HasPrefix(ev.Data, []byte("[DONE]")):
			d.done = true
			return
		}
		if !d.event(ev.Data) {
			return
		}
	}
}

// whole reads the answer of a server that ignores "stream": one JSON object.
func (d *decoder) whole(body io.Reader) {
	data, err := io.ReadAll(io.LimitReader(body, wire.MaxEvent))
	if err != nil {
		d.transmit = err
		return
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return
	}
	d.done = d.event(data)
}

// event handles one chunk; false ends the reading.
func (d *decoder) event(data []byte) bool {
	c, err := parse(data)
	if err != nil {
		f := d.provider.failure(d.request)
		return d.fail(f.Fail(model.FromFinishReason("malformed_response")))
	}
	d.chunks++
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return d.failInStream(c.Error)
	}
	if c.Object == "error" {
		return d.failInStream(data)
	}
	for i := range c.Choices {
		if c.Choices[i].Index == 0 && !d.choice(&c.Choices[i]) {
			return false
		}
	}
	if c.Usage != nil {
		u := c.Usage.counts()
		return d.give(model.Part{Usage: &u})
	}
	return true
}

func (d *decoder) choice(c *choice) bool {
	if c.FinishReason != "" {
		d.finish = c.FinishReason
	}
	dl := &c.Delta
	if c.Message != nil {
		dl = c.Message
	}
	thinking := dl.ReasoningContent
	if thinking == "" {
		thinking = dl.Reasoning
	}
	if thinking != "" && !d.give(model.Part{Thinking: thinking}) {
		return false
	}
	for _, text := range [...]string{dl.Content, dl.Refusal} {
		if text == "" {
			continue
		}
		d.said = true
		if !d.give(model.Part{Text: text}) {
			return false
		}
	}
	for _, tc := range dl.ToolCalls {
		d.calls.add(tc)
	}
	return true
}

// end judges what came and gives the tool calls and Done, or an error.
func (d *decoder) end() bool {
	f := d.provider.failure(d.request)
	switch {
	case d.done:
	case d.ctx.Err() != nil || d.transmit != nil && d.finish == "":
		return d.fail(f.Cut(d.ctx, d.transmit))
	case d.chunks == 0:
		return d.fail(f.Fail(model.EmptyResponse))
	case d.finish == "":
		return d.fail(f.Cut(d.ctx, io.ErrUnexpectedEOF))
	}
	if c := model.FromFinishReason(d.finish); c != "" {
		f.Code = d.finish
		return d.fail(f.Fail(c))
	}
	reason := stopReason(d.finish)
	if reason == "refusal" {
		d.calls = calls{} // what was filtered must not be done either
	}
	blocks, ok := d.calls.blocks(d.provider.newID, reason == "length")
	if !ok {
		return d.fail(f.Fail(model.FromFinishReason("malformed_response")))
	}
	if reason == "stop" || reason == "toolUse" {
		reason = "stop"
		if len(blocks) > 0 {
			reason = "toolUse"
		} else if !d.said {
			return d.fail(f.Fail(model.EmptyResponse))
		}
	}
	for i := range blocks {
		if !d.give(model.Part{ToolCall: &blocks[i]}) {
			return false
		}
	}
	return d.give(model.Part{Done: &model.Done{StopReason: reason, Raw: d.finish}})
}

// stopReason maps the server's word; whatever is not known is a plain stop, and
// so is none at all after [DONE].
func stopReason(finish string) string {
	switch finish {
	case "length", "max_tokens":
		return "length"
	case "content_filter", "refusal":
		return "refusal"
	case "tool_calls", "function_call":
		return "toolUse"
	}
	return "stop"
}

func (d *decoder) give(p model.Part) bool {
	if !d.yield(p, nil) {
		d.stopped = true
		return false
	}
	return true
}

// fail gives the error that ends the stream; always false.
func (d *decoder) fail(err *model.Error) bool {
	d.yield(model.Part{}, err)
	d.stopped = true
	return false
}

func (d *decoder) failInStream(raw []byte) bool {
	f := d.provider.failure(d.request)
	f.Code, f.Text, f.Status = describe(raw)
	return d.fail(f.Classified())
}
