package loop

import (
	"slices"
	"strings"

	"laneway/shared/model"
	"laneway/shared/model/retry"
	"laneway/shared/transcript"
)

// What a model is told to go on with an answer that its output limit cut. It is added to
// the conversation of the one call and stored nowhere: the message of the user stands in
// the conversation once, as before.
const (
	textContinue = "[System: your previous message was cut at the output limit. Continue exactly where it stops, without repeating anything and without saying so.]"
	textRecall   = "[System: your previous message was cut at the output limit while it called a tool; the call was not made. Call the tool again with shorter arguments, or answer in text.]"
)

// cutError is an answer that ended at the output limit.
type cutError struct{ ans answer }

func (*cutError) Error() string { return "the output limit cut the answer" }

// asModel is the failure as the retries count it.
func (e *cutError) asModel(sel model.Selected) *model.Error {
	return &model.Error{Class: retry.OutputLimit, Message: "The model's output limit cut the answer.", Provider: sel.Name, Model: sel.Model}
}

// limited says whether an answer is to be continued. One with calls is: the last of them
// may be cut, and a call of which that is not known is never made.
func (a *answer) limited() bool { return a.stop == "length" && !a.silent }

// keep makes what was said a row of the conversation, which the next call continues.
// Calls in it are dropped. false: nothing was said.
func (a *attempt) keep(ans answer) bool {
	ans.blocks = slices.DeleteFunc(slices.Clone(ans.blocks), func(b model.Block) bool {
		return b.Type == model.ToolCall || b.Type == model.Thinking // unsigned, or not of a whole message
	})
	a.count(ans)
	if strings.TrimSpace(textOf(ans.blocks)) == "" {
		return false
	}
	row := a.row(ans)
	row.StopReason = "length"
	a.add(row)
	a.said0 = a.shown.String()
	return true
}

// continued is the text of this run's answer that stands in the conversation already and
// is to be continued; its rows are the last ones.
func (a *attempt) continued() string {
	var parts []string
	for i := range slices.Backward(a.rows) {
		e := &a.rows[i]
		if !cutRow(e) || e.RunID != a.st.RunID {
			break
		}
		parts = append(parts, e.Text())
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

// cutRow says that a row is an answer which its output limit cut.
func cutRow(e *transcript.Entry) bool {
	return e.Type == transcript.Message && e.Role == model.Assistant && e.StopReason == "length" && e.Abort == nil && e.Key == ""
}

func textOf(blocks []model.Block) string {
	var b strings.Builder
	for i := range blocks {
		if blocks[i].Type == model.Text {
			b.WriteString(blocks[i].Text)
		}
	}
	return b.String()
}

// instruct adds what a cut answer needs behind the conversation.
func (a *attempt) instruct(messages []model.Message, cutCall bool) []model.Message {
	var say string
	switch {
	case cutCall:
		say = textRecall
	case len(a.rows) > 0 && cutRow(&a.rows[len(a.rows)-1]) && a.rows[len(a.rows)-1].RunID == a.st.RunID:
		say = textContinue
	default:
		return messages
	}
	return append(slices.Clip(messages), model.Message{Role: model.User, Content: []model.Block{{Type: model.Text, Text: say}}})
}
