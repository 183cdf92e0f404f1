package builtin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"laneway/shared/chars"
)

// pageStart is a place in a text: a line from 1 and characters to skip in it.
type pageStart struct{ line, cursor int }

// textPage is a piece of a text, bounded by lines and bytes. A last line that is
// cut inside stands only in a page of its own, and next then points into it.
type textPage struct {
	text  string
	lines int
	more  bool
	next  pageStart // set if more
}

// readPage reads the piece that begins at a place. Memory is bounded by one page,
// however far the place is from the start of the text.
func readPage(ctx context.Context, from io.Reader, at pageStart, limit int) (textPage, error) {
	if limit <= 0 || limit > readLines {
		limit = readLines
	}
	in := bufio.NewReaderSize(untilDone(ctx, from), 64*1024)
	if err := skipLines(in, at.line-1); err != nil {
		return textPage{}, err
	}
	if err := skipChars(in, at.cursor); err != nil {
		return textPage{}, err
	}
	// One rune more than fits tells whether the page is the last one.
	buf := make([]byte, readBytes+utf8.UTFMax)
	n, err := io.ReadFull(in, buf)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return textPage{}, err
	}
	return cutPage(buf[:n], at, limit), nil
}

// cutPage cuts what was read to whole lines, or to whole characters if not even
// the first line fits.
func cutPage(buf []byte, at pageStart, limit int) textPage {
	end, lines := 0, 0 // of the whole lines that fit
	for lines < limit {
		i := bytes.IndexByte(buf[end:], '\n')
		if i < 0 || end+i+1 > readBytes {
			break
		}
		end += i + 1
		lines++
	}
	switch {
	case lines == limit && end < len(buf):
		return page(buf[:end], lines, &pageStart{line: at.line + lines})
	case len(buf) <= readBytes: // the last line may have no line break
		if end < len(buf) {
			lines++
		}
		return page(buf, lines, nil)
	case lines > 0:
		return page(buf[:end], lines, &pageStart{line: at.line + lines})
	}
	cut := buf[:readBytes]
	for back := 0; back < utf8.UTFMax && !utf8.RuneStart(buf[len(cut)]); back++ {
		cut = cut[:len(cut)-1]
	}
	return page(cut, 1, &pageStart{line: at.line, cursor: at.cursor + chars.Count(string(cut))})
}

func page(text []byte, lines int, next *pageStart) textPage {
	p := textPage{lines: lines}
	if next != nil {
		p.more, p.next = true, *next
		text = bytes.TrimSuffix(text, []byte("\n"))
	}
	p.text = strings.ToValidUTF8(string(text), "\uFFFD")
	return p
}

func skipLines(in *bufio.Reader, n int) error {
	for seen := 0; seen < n; {
		_, err := in.ReadSlice('\n')
		switch {
		case err == nil:
			seen++
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return fmt.Errorf("offset %d is beyond the end of the file", n+1)
		default:
			return err
		}
	}
	if n > 0 {
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			return fmt.Errorf("offset %d is beyond the end of the file (%d lines)", n+1, n)
		}
	}
	return nil
}

// skipChars stops at the end of the line: a cursor never leads into the next one.
func skipChars(in *bufio.Reader, n int) error {
	for n > 0 {
		r, _, err := in.ReadRune()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if r == '\n' {
			return in.UnreadRune()
		}
		n -= chars.Count(string(r))
	}
	return nil
}

// interruptible is a reader as a function, which fails once its context has ended.
type interruptible func(p []byte) (int, error)

func (read interruptible) Read(p []byte) (int, error) { return read(p) }

func untilDone(ctx context.Context, from io.Reader) interruptible {
	return func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return from.Read(p)
	}
}
