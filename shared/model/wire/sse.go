// Package wire has what the adapters that speak HTTP share: a reader of server-sent
// events and the client that they use unless they are given one.
//
// Guarantees: an event is given as soon as its last byte is there; the reader
// holds at most one event, of at most MaxEvent bytes; nothing is started in the
// background.
package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxEvent bounds one event: no provider sends a larger one, and a server that
// never ends a line must not fill the memory.
const MaxEvent = 16 << 20

// ErrEventTooLarge says that an event has more than MaxEvent bytes.
var ErrEventTooLarge = errors.New("server-sent event too large")

// Events reads server-sent events. Line ends are LF or CRLF.
type Events struct {
	r     *bufio.Reader
	alive func()
	data  []byte
	line  []byte
	name  []byte
	lines int
}

// NewEvents reads from r and calls alive at every line, comments included.
func NewEvents(r io.Reader, alive func()) *Events {
	// Behind it the connection is read 4 KB at a time: more room would stay empty.
	return &Events{r: bufio.NewReaderSize(r, 8<<10), alive: alive}
}

// Event is one event; its bytes are valid until the next call of Next.
type Event struct {
	Name []byte
	Data []byte
}

// Next gives the next event that has data. At the end of the stream it gives
// io.EOF; an event whose closing empty line was lost counts, since some servers
// never write the last one. Any other error is the reader's.
func (e *Events) Next() (Event, error) {
	e.data, e.name, e.lines = e.data[:0], e.name[:0], 0
	for {
		line, err := e.readLine()
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			if errors.Is(err, io.EOF) && e.lines > 0 {
				return Event{e.name, e.data}, nil
			}
			return Event{}, err
		}
		e.alive()
		if len(line) == 0 {
			if e.lines > 0 {
				return Event{e.name, e.data}, nil
			}
			e.name = e.name[:0]
			continue
		}
		if err := e.field(line); err != nil {
			return Event{}, err
		}
	}
}

func (e *Events) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if len(e.data)+len(value) >= MaxEvent {
			return ErrEventTooLarge
		}
		if e.lines > 0 {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		e.lines++
	case "event":
		e.name = append(e.name[:0], value...)
	}
	return nil // comments, ids and unknown fields mean nothing here
}

// readLine gives a line without its end; with io.EOF maybe the last, unended one.
func (e *Events) readLine() ([]byte, error) {
	line, err := e.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		e.line = e.line[:0]
		for errors.Is(err, bufio.ErrBufferFull) {
			if len(e.line)+len(line) >= MaxEvent {
				return nil, ErrEventTooLarge
			}
			e.line = append(e.line, line...)
			line, err = e.r.ReadSlice('\n')
		}
		e.line = append(e.line, line...)
		line = e.line
	}
	if err == nil {
		line = line[:len(line)-1]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, err
}
