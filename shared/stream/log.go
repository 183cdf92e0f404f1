package stream

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"laneway/shared/protocol"
	"laneway/shared/push"
	"laneway/shared/run"
	"laneway/shared/table"
)

// A row of the log holds the events of one batch.
const (
	attrEvents  = "ev" // JSON list of logged, deflated if attrDeflate is set
	attrDeflate = "z"
	attrLast    = "n" // number of its last event

	// maxLogged is what an event may take in the log, maxRow all events of a row: the
	// largest are made smaller, as in a frame. A store takes 400 KB an item.
	maxLogged = push.MaxFrame - 8<<10
	maxRow    = 256 << 10
	// deflateFrom is the size from which a row is compressed: rows are billed by the
	// kilobyte, and a terminal says its text twice.
	deflateFrom = 1 << 10
)

// Logged is an event of the log.
type Logged struct {
	Seq    int64           `json:"n"`
	TS     int64           `json:"t"` // ms
	Stream string          `json:"s"` // as Event.Stream
	Data   json.RawMessage `json:"d"` // as Event.Data
}

func encodeRow(entries []*entry, last int64) (table.Attrs, error) {
	sizes, sum := make([]int, len(entries)), 0
	for i, e := range entries {
		sizes[i] = min(len(e.data), maxLogged)
		sum += sizes[i]
	}
	limit := maxLogged
	if over := sum - maxRow; over > 0 {
		limit = commonLength(sizes, over)
	}
	list := make([]Logged, len(entries))
	for i, e := range entries {
		list[i] = Logged{Seq: e.seq, TS: e.ts, Stream: e.stream, Data: fit(e.stream, e.data, limit)}
	}
	raw, err := protocol.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("encode events: %w", err)
	}
	a := table.Attrs{attrLast: last, attrEvents: []byte(raw)}
	if len(raw) >= deflateFrom {
		a[attrEvents], a[attrDeflate] = deflate(raw), true
	}
	return a, nil
}

// deflaters are kept: one takes more than half a megabyte.
var deflaters = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(io.Discard, flate.BestSpeed) // the level is valid
	return w
}}

func deflate(raw []byte) []byte {
	w, _ := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	_, _ = w.Write(raw) // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

func decodeRow(a table.Attrs) ([]Logged, error) {
	raw := a.Bytes(attrEvents)
	if a.Bool(attrDeflate) {
		r := flate.NewReader(bytes.NewReader(raw))
		var err error
		if raw, err = io.ReadAll(io.LimitReader(r, 16*maxRow)); err != nil {
			return nil, fmt.Errorf("inflate events: %w", err)
		}
	}
	var list []Logged
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("decode events: %w", err)
	}
	return list, nil
}

// Log reads the events of a run with numbers above after, in their order.
func Log(ctx context.Context, store table.Store, ref run.Ref, after int64) ([]Logged, error) {
	from := ref.EventKey(0).SK
	if after > 0 {
		// The last row that begins at or before after may reach beyond it.
		page, err := store.Query(ctx, table.Query{
			Table: table.Runs, PK: ref.PK(), From: from, To: ref.EventKey(after + 1).SK, Desc: true, Limit: 1,
		})
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		if len(page.Items) > 0 {
			from = page.Items[0].Key.SK
		}
	}
	var out []Logged
	err := eachRow(ctx, store, ref, from, func(it table.Item) error {
		if it.Attrs.Int(attrLast) <= after {
			return nil
		}
		list, err := decodeRow(it.Attrs)
		for _, l := range list {
			if l.Seq > after {
				out = append(out, l)
			}
		}
		return err
	})
	return out, err
}

// eventsEnd is the first sort key behind all rows of events.
const eventsEnd = "E$"

func eachRow(ctx context.Context, store table.Store, ref run.Ref, from string, f func(table.Item) error) error {
	q := table.Query{Table: table.Runs, PK: ref.PK(), From: from, To: eventsEnd}
	for {
		page, err := store.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		for _, it := range page.Items {
			if err := f(it); err != nil {
				return err
			}
		}
		if page.Next == "" {
			return nil
		}
		q.After = page.Next
	}
}
