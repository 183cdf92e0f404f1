package upload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"laneway/shared/model"
)

// Limits of what a model is shown of a file.
const (
	maxImage = 5 << 20   // bytes; larger ones no provider takes
	maxText  = 256 << 10 // bytes of a text file
)

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Blocks are the files of a message as a model sees them: images as images, text as
// text under its name, of anything else that it is there.
func (s *Service) Blocks(ctx context.Context, raw json.RawMessage) ([]model.Block, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var files []File
	if err := json.Unmarshal(raw, &files); err != nil {
		return nil, fmt.Errorf("attachments: %w", err)
	}
	var out []model.Block
	for _, f := range files {
		data, err := s.Blobs.Get(ctx, f.Key)
		if err != nil {
			return nil, fmt.Errorf("read attachment %q: %w", f.Name, err)
		}
		if int64(len(data)) != f.Size || digest(data) != f.SHA256 {
			return nil, fmt.Errorf("attachment %q is not what was named", f.Name)
		}
		out = append(out, block(f, data))
	}
	return out, nil
}

func block(f File, data []byte) model.Block {
	mime, _, _ := strings.Cut(f.Mime, ";")
	if mime == "" {
		mime, _, _ = strings.Cut(http.DetectContentType(data), ";")
	}
	name := path.Base("/" + strings.ReplaceAll(f.Name, "\\", "/"))
	if name == "/" || name == "." {
		name = "file"
	}
	switch {
	case strings.HasPrefix(mime, "image/") && len(data) <= maxImage:
		return model.Block{Type: model.Image, MimeType: mime, Data: data}
	case utf8.Valid(data) && !bytes.ContainsRune(data, 0):
		text, note := string(data), ""
		if len(text) > maxText {
			text = strings.ToValidUTF8(text[:maxText], "")
			note = fmt.Sprintf("\n[... %d more bytes]", len(data)-len(text))
		}
		return model.Block{Type: model.Text, Text: fmt.Sprintf("[Attached file: %s]\n%s%s", name, text, note)}
	}
	return model.Block{Type: model.Text, Text: fmt.Sprintf("[Attached file: %s (%s, %d bytes); its content cannot be shown]", name, mime, len(data))}
}
