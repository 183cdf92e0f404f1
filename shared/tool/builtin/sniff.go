package builtin

import "bytes"

// sniffBytes of a file's start tell what it is.
const sniffBytes = 512

// imageType is the MIME type of an image that models can see, by its first bytes
// and not by its name; empty for everything else.
func imageType(start []byte) string {
	has := func(magic string) bool { return bytes.HasPrefix(start, []byte(magic)) }
	switch {
	case has("\x89PNG\r\n\x1a\n"):
		return "image/png"
	case has("\xff\xd8\xff"):
		return "image/jpeg"
	case has("GIF87a"), has("GIF89a"):
		return "image/gif"
	case has("RIFF") && len(start) >= 12 && string(start[8:12]) == "WEBP":
		return "image/webp"
	case has("BM") && bytes.IndexByte(start, 0) >= 0:
		return "image/bmp"
	}
	return ""
}

// isBinary says whether a file is no text. UTF-16 text counts as binary: its zero
// bytes would reach the model as noise.
func isBinary(start []byte) bool { return bytes.IndexByte(start, 0) >= 0 }
