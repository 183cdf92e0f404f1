package loop

import (
	"context"

	"laneway/shared/model"
	"laneway/shared/run"
)

// content is a message as it goes into the transcript: its text, then its files. A
// file that cannot be read is named to the model instead: what was written is
// answered all the same.
func (a *attempt) content(ctx context.Context, in run.Input) []model.Block {
	blocks := []model.Block{{Type: model.Text, Text: in.Message}}
	if len(in.Attachments) == 0 || a.r.Files == nil {
		return blocks
	}
	files, err := a.r.Files.Blocks(ctx, in.Attachments)
	if err != nil {
		a.r.Logger.Error("attachments not read", "run", a.st.Ref.Run, "err", err)
		return append(blocks, model.Block{Type: model.Text, Text: textNoFiles})
	}
	if in.Message == "" {
		return files
	}
	return append(blocks, files...)
}

// textNoFiles is what the model reads where files could not be read.
const textNoFiles = "[The files that came with this message could not be read.]"
