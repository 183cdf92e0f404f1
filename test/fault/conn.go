package fault

import (
	"encoding/json"
	"fmt"
)

// conn is a client's connection, and what it has got.
type conn struct {
	s    *Sim
	id   string
	gone bool
	hurt bool             // a post to it went wrong: order and text are not judged
	runs map[string]*seen // events by run
}

// seen is what a connection has got of a run's events.
type seen struct {
	last  int64
	nums  map[int64]bool
	ended int64 // number of the event that told the end; 0: not told
	text  string
	item  string
}

// brief is a frame in a line of the timeline.
func brief(b []byte) string {
	var f wire
	if json.Unmarshal(b, &f) != nil {
		return "?"
	}
	switch {
	case f.Type == "res":
		return fmt.Sprintf("res %s ok=%v %s", f.ID, f.OK, f.Payload.Status)
	case f.Payload.Data.Phase != "":
		return fmt.Sprintf("%s %s %s/%s #%d", f.Event, f.Payload.RunID, f.Payload.Stream, f.Payload.Data.Phase, f.Payload.Seq)
	}
	return fmt.Sprintf("%s %s %s%s #%d", f.Event, f.Payload.RunID, f.Payload.Stream, f.Payload.State, f.Payload.Seq)
}

// wire is what the kit reads of a frame.
type wire struct {
	Type  string `json:"type"`
	ID    string `json:"id"`
	OK    bool   `json:"ok"`
	Event string `json:"event"`
	Error struct {
		Code string `json:"code"`
	} `json:"error"`
	Payload struct {
		RunID  string `json:"runId"`
		Status string `json:"status"`
		State  string `json:"state"`
		Stream string `json:"stream"`
		Seq    int64  `json:"seq"`
		Data   struct {
			Phase   string `json:"phase"`
			ItemID  string `json:"itemId"`
			Text    string `json:"text"`
			Delta   string `json:"delta"`
			Replace bool   `json:"replace"`
		} `json:"data"`
	} `json:"payload"`
}

// take is a frame that arrived; p sent it.
func (c *conn) take(p *proc, b []byte) {
	var f wire
	if err := json.Unmarshal(b, &f); err != nil {
		c.s.violatef("frame", "no JSON: %s", b)
		return
	}
	switch f.Type {
	case "res":
		c.s.notef(c.id, "got %s", brief(b))
		c.s.ghost.answered(c, &f, b)
	case "event":
		if f.Payload.RunID != "" && f.Payload.Seq > 0 {
			c.s.notef(c.id, "got %s", brief(b))
			c.s.ghost.told(c, p, &f, b)
		}
	default:
		c.s.violatef("frame", "of type %q: %s", f.Type, b)
	}
}

// of is what the connection has got of a run.
func (c *conn) of(runID string) *seen {
	if c.runs == nil {
		c.runs = make(map[string]*seen)
	}
	v := c.runs[runID]
	if v == nil {
		v = &seen{nums: make(map[int64]bool)}
		c.runs[runID] = v
	}
	return v
}

// show puts text on the client's screen, as a client does with assistant events.
func (v *seen) show(f *wire) {
	d := &f.Payload.Data
	if d.ItemID != v.item {
		v.item, v.text = d.ItemID, ""
	}
	if d.Replace {
		v.text = d.Text
	} else {
		v.text += d.Delta
	}
}
