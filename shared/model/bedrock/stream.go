package bedrock

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"laneway/shared/model"
)

// open is a content block that is being streamed.
type open struct {
	id, name  string
	tool      bool
	thinking  []byte
	signature string
	encrypted []byte
	input     []byte
}

// decoder turns one event stream into parts.
type decoder struct {
	failure model.Failure
	ctx     context.Context //nolint:containedctx // lives as long as the call of Stream that made it
	yield   func(model.Part, error) bool

	blocks  map[int32]*open
	calls   []*open // tool calls in the order in which they began
	stop    types.StopReason
	said    bool // some text was given
	begun   bool // the server sent something
	counted bool // the metadata came, which is the last event
}

// run reads the events to their end and says whether the message ended as it
// should, with Done given.
func (d *decoder) run(events <-chan types.ConverseStreamOutput, failed func() error) bool {
	progress := model.Progress(d.ctx)
	for ev := range events {
		progress()
		d.begun = true
		if !d.event(ev) {
			return false
		}
		if d.stop != "" && d.counted {
			break
		}
	}
	switch err := failed(); {
	case d.stop != "": // what breaks after it takes nothing from the message
		return d.end()
	case err == nil && d.ctx.Err() == nil && !d.begun:
		return d.fail(d.failure.Fail(model.EmptyResponse))
	case err == nil:
		return d.fail(d.failure.Cut(d.ctx, io.ErrUnexpectedEOF))
	default:
		return d.broken(err)
	}
}

// broken gives the error of a stream that ended with one: an exception of the
// service, or a failure of the connection.
func (d *decoder) broken(err error) bool {
	f := d.failure
	describe(&f, err)
	if d.ctx.Err() != nil || f.Code == "" {
		return d.fail(d.failure.Cut(d.ctx, err))
	}
	return d.fail(f.Classified())
}

// event handles one event; false ends the reading.
func (d *decoder) event(ev types.ConverseStreamOutput) bool {
	switch ev := ev.(type) {
	case *types.ConverseStreamOutputMemberContentBlockStart:
		b := d.block(ev.Value.ContentBlockIndex)
		if s, ok := ev.Value.Start.(*types.ContentBlockStartMemberToolUse); ok {
			b.tool, b.id, b.name = true, aws.ToString(s.Value.ToolUseId), aws.ToString(s.Value.Name)
			d.calls = append(d.calls, b)
		}
	case *types.ConverseStreamOutputMemberContentBlockDelta:
		return d.delta(d.block(ev.Value.ContentBlockIndex), ev.Value.Delta)
	case *types.ConverseStreamOutputMemberContentBlockStop:
		return d.close(aws.ToInt32(ev.Value.ContentBlockIndex))
	case *types.ConverseStreamOutputMemberMessageStop:
		d.stop = ev.Value.StopReason
		if d.stop == "" {
			d.stop = types.StopReasonEndTurn
		}
	case *types.ConverseStreamOutputMemberMetadata:
		d.counted = true
		return d.count(ev.Value.Usage)
	}
	return true // the start of the message, and whatever may be added later
}

func (d *decoder) block(index *int32) *open {
	i := aws.ToInt32(index)
	b := d.blocks[i]
	if b == nil {
		b = &open{}
		d.blocks[i] = b
	}
	return b
}

func (d *decoder) delta(b *open, delta types.ContentBlockDelta) bool {
	switch v := delta.(type) {
	case *types.ContentBlockDeltaMemberText:
		if v.Value == "" {
			return true
		}
		d.said = true
		return d.yield(model.Part{Text: v.Value}, nil)
	case *types.ContentBlockDeltaMemberToolUse:
		b.input = append(b.input, aws.ToString(v.Value.Input)...)
	case *types.ContentBlockDeltaMemberReasoningContent:
		switch r := v.Value.(type) {
		case *types.ReasoningContentBlockDeltaMemberText:
			if r.Value == "" {
				return true
			}
			b.thinking = append(b.thinking, r.Value...)
			return d.yield(model.Part{Thinking: r.Value}, nil)
		case *types.ReasoningContentBlockDeltaMemberSignature:
			b.signature += r.Value
		case *types.ReasoningContentBlockDeltaMemberRedactedContent:
			b.encrypted = append(b.encrypted, r.Value...)
		}
	}
	return true
}

// close ends a block. Tool calls wait until it is known why the message stopped:
// at the token limit a call that is cut is closed, too.
func (d *decoder) close(index int32) bool {
	b := d.blocks[index]
	delete(d.blocks, index)
	switch {
	case b == nil || b.tool:
		return true
	case len(b.encrypted) > 0:
		return d.yield(model.Part{ThinkingDone: &model.Block{Type: model.Thinking, Signature: redacted + base64.StdEncoding.EncodeToString(b.encrypted)}}, nil)
	case b.signature != "":
		return d.yield(model.Part{ThinkingDone: &model.Block{Type: model.Thinking, Thinking: string(b.thinking), Signature: b.signature}}, nil)
	}
	return true
}

func (d *decoder) count(u *types.TokenUsage) bool {
	if u == nil {
		return true
	}
	n := func(p *int32) int64 { return int64(aws.ToInt32(p)) }
	out := model.Usage{
		Input: n(u.InputTokens), Output: n(u.OutputTokens), CacheRead: n(u.CacheReadInputTokens), CacheWrite: n(u.CacheWriteInputTokens),
		Total: n(u.TotalTokens),
	}
	if out.Total == 0 {
		out.Total = out.Input + out.Output + out.CacheRead + out.CacheWrite
	}
	return d.yield(model.Part{Usage: &out}, nil)
}

// end judges what came and gives the tool calls and Done, or an error.
func (d *decoder) end() bool {
	reason, malformed := stopReason(d.stop)
	if malformed {
		return d.fail(d.failure.Fail(model.FromFinishReason("malformed_response")))
	}
	if reason == "refusal" {
		d.calls = nil // what was filtered must not be done either
	}
	seen := make(map[string]bool)
	given := 0
	for _, c := range d.calls {
		if reason == "length" && !json.Valid(c.input) {
			continue // cut
		}
		if c.name == "" || c.id == "" || seen[c.id] {
			return d.fail(d.failure.Fail(model.FromFinishReason("malformed_response")))
		}
		seen[c.id] = true
		given++
		if !d.yield(model.Part{ToolCall: &model.Block{
			Type: model.ToolCall, ID: c.id, Name: c.name, Arguments: model.Args(string(c.input)),
		}}, nil) {
			return false
		}
	}
	if reason == "stop" {
		switch {
		case given > 0:
			reason = "toolUse"
		case !d.said:
			return d.fail(d.failure.Fail(model.EmptyResponse))
		}
	}
	return d.yield(model.Part{Done: &model.Done{StopReason: reason, Raw: string(d.stop)}}, nil)
}

// stopReason maps the service's word and says whether it means a broken answer.
func stopReason(s types.StopReason) (reason string, malformed bool) {
	switch s {
	case types.StopReasonMaxTokens, types.StopReasonModelContextWindowExceeded:
		return "length", false
	case types.StopReasonGuardrailIntervened, types.StopReasonContentFiltered:
		return "refusal", false
	case types.StopReasonMalformedModelOutput, types.StopReasonMalformedToolUse:
		return "", true
	case types.StopReasonEndTurn, types.StopReasonToolUse, types.StopReasonStopSequence:
	}
	return "stop", false
}

// fail gives the error that ends the stream; always false.
func (d *decoder) fail(err *model.Error) bool {
	d.yield(model.Part{}, err)
	return false
}
