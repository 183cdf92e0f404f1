package run

import (
	"encoding/json"

	"laneway/shared/meter"
	"laneway/shared/model"
)

// Counters is what a run has done. The loop's checkpoint has them among its members,
// so that a run that is at work can be asked.
type Counters struct {
	Step      int64       `json:"step"`            // model calls that were committed
	ToolCalls int64       `json:"tools,omitempty"` // calls that were begun
	Usage     model.Usage `json:"usage"`
	// Used is what attempts that ended with a checkpoint have used, by what it is
	// billed by. What a dead attempt used is not known.
	Used map[meter.Name]float64 `json:"used,omitempty"`
	// PausedMs is what the run has waited for approvals: it does not count as its time.
	PausedMs int64 `json:"paused,omitempty"`
}

// Counted is what the run has done so far, or did.
func (s *Status) Counted() Counters {
	var c Counters
	if o := s.Outcome; o != nil {
		c.Step, c.ToolCalls, c.Used = o.Steps, o.ToolCalls, o.Used
		if o.Usage != nil {
			c.Usage = *o.Usage
		}
		return c
	}
	if len(s.Checkpoint) > 0 && json.Unmarshal(s.Checkpoint, &c) != nil {
		return Counters{}
	}
	return c
}
