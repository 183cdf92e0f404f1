package openai

import (
	"encoding/base64"
	"encoding/json"
	"errors"

	"laneway/shared/model"
	"laneway/shared/protocol"
)

// noOutput stands for an empty tool result, which some servers refuse.
const noOutput = "(no output)"

// writer appends the parts of a request. Content is never null or absent: that makes
// some servers fail.
type writer struct {
	b     []byte
	count int // of messages
}

// estimate is about how many bytes a request takes, so that it is written in one piece
// of memory.
func estimate(r model.Request) int {
	const around, perTool = 80, 100 // bytes beside the texts
	n := 1024 + len(r.System) + len(r.System)/16
	for i := range r.Messages {
		n += around
		for k := range r.Messages[i].Content {
			b := &r.Messages[i].Content[k]
			n += len(b.Text) + len(b.Text)/16 + len(b.Arguments) + len(b.Arguments)/4 + base64.StdEncoding.EncodedLen(len(b.Data))
			if b.Type == model.ToolCall {
				n += around + len(b.ID) + len(b.Name)
			}
		}
	}
	for i := range r.Tools {
		n += perTool + len(r.Tools[i].Description) + len(r.Tools[i].Schema)
	}
	return n
}

func (w *writer) raw(s string) { w.b = append(w.b, s...) }

func (w *writer) text(s string) { w.b = protocol.AppendString(w.b, s) }

func (w *writer) optional(name, value string) {
	if value != "" {
		w.raw(name)
		w.text(value)
	}
}

// message begins a message and its content.
func (w *writer) message(role string) {
	if w.count++; w.count > 1 {
		w.raw(",")
	}
	w.raw(`{"role":"`)
	w.raw(role)
	w.raw(`","content":`)
}

// messages writes the conversation. A tool message carries text only: images of results
// go into a user message behind the last result, since results must follow their calls
// directly.
func (w *writer) messages(r model.Request) {
	if r.System != "" {
		w.message("system")
		w.text(r.System)
		w.raw("}")
	}
	var shown []*model.Message // results with images that are still to be sent
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role != model.ToolResult {
			w.images(shown)
			shown = shown[:0]
		}
		switch m.Role {
		case model.User:
			w.message("user")
			w.content(m.Content)
			w.raw("}")
		case model.Assistant:
			w.assistant(m.Content)
		case model.ToolResult:
			w.message("tool")
			pictures := has(m.Content, model.Image)
			switch {
			case has(m.Content, model.Text):
				w.joined(m.Content, `\n`)
			case pictures:
				w.text("(the images follow)")
			default:
				w.text(noOutput)
			}
			w.raw(`,"tool_call_id":`)
			w.text(m.ToolCallID)
			w.raw("}")
			if pictures {
				shown = append(shown, m)
			}
		}
	}
	w.images(shown)
}

// images writes one user message with the images of results.
func (w *writer) images(of []*model.Message) {
	if len(of) == 0 {
		return
	}
	w.message("user")
	at := len(w.b)
	for _, m := range of {
		w.raw(`,{"type":"text","text":`)
		w.text("Images of the result of " + m.ToolName + ":")
		w.raw("}")
		w.pictures(m.Content)
	}
	w.b[at] = '[' // in the place of the first comma
	w.raw("]}")
}

// content is a text, or a list of parts where there are images.
func (w *writer) content(blocks []model.Block) {
	if !has(blocks, model.Image) {
		w.joined(blocks, `\n`)
		return
	}
	at := len(w.b)
	if has(blocks, model.Text) {
		w.raw(`,{"type":"text","text":`)
		w.joined(blocks, `\n`)
		w.raw("}")
	}
	w.pictures(blocks)
	w.b[at] = '[' // in the place of the first comma
	w.raw("]")
}

// pictures writes parts, a comma in front of each.
func (w *writer) pictures(blocks []model.Block) {
	for i := range blocks {
		b := &blocks[i]
		if b.Type != model.Image {
			continue
		}
		w.raw(`,{"type":"image_url","image_url":{"url":`)
		w.text("data:" + b.MimeType + ";base64,")
		w.b = w.b[:len(w.b)-1] // the text goes on; base64 needs no escapes
		w.b = base64.StdEncoding.AppendEncode(w.b, b.Data)
		w.raw(`"}}`)
	}
}

// assistant leaves out a message in which nothing was said or called, as after an early
// abort: some servers refuse it. Thinking is not given back; the API has no place for it.
func (w *writer) assistant(blocks []model.Block) {
	calls := has(blocks, model.ToolCall)
	if !calls && !has(blocks, model.Text) {
		return
	}
	w.message("assistant")
	w.joined(blocks, "")
	if calls {
		w.raw(`,"tool_calls":`)
		at := len(w.b)
		for i := range blocks {
			b := &blocks[i]
			if b.Type != model.ToolCall {
				continue
			}
			w.raw(`,{"id":`)
			w.text(b.ID)
			w.raw(`,"type":"function","function":{"name":`)
			w.text(b.Name)
			w.raw(`,"arguments":`)
			w.text(model.ArgsText(b.Arguments))
			w.raw("}}")
		}
		w.b[at] = '[' // in the place of the first comma
		w.raw("]")
	}
	w.raw("}")
}

// joined writes the text blocks as one string; sep is written between them as it is.
func (w *writer) joined(blocks []model.Block, sep string) {
	w.raw(`"`)
	first := true
	for i := range blocks {
		b := &blocks[i]
		if b.Type != model.Text || b.Text == "" {
			continue
		}
		if !first {
			w.raw(sep)
		}
		first = false
		at := len(w.b)
		w.text(b.Text)
		w.b = append(w.b[:at], w.b[at+1:len(w.b)-1]...) // without its quotes
	}
	w.raw(`"`)
}

// has says whether there is a block of a type; an empty text is none.
func has(blocks []model.Block, t model.BlockType) bool {
	for i := range blocks {
		if blocks[i].Type == t && (t != model.Text || blocks[i].Text != "") {
			return true
		}
	}
	return false
}

// errSchema says that what should describe a tool's arguments is no JSON: inside the
// request it would break all of it.
var errSchema = errors.New("the schema of a tool is not JSON")

func (w *writer) tools(tools []model.Tool) error {
	if len(tools) == 0 {
		return nil
	}
	w.raw(`,"tools":`)
	at := len(w.b)
	for i := range tools {
		t := &tools[i]
		w.raw(`,{"type":"function","function":{"name":`)
		w.text(t.Name)
		w.optional(`,"description":`, t.Description)
		w.raw(`,"parameters":`)
		switch {
		case len(t.Schema) == 0:
			w.raw(`{"type":"object","properties":{}}`)
		case !json.Valid(t.Schema):
			return errSchema
		default:
			w.b = append(w.b, t.Schema...)
		}
		w.raw("}}")
	}
	w.b[at] = '[' // in the place of the first comma
	w.raw("]")
	return nil
}
