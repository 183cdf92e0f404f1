package fault

import (
	"context"

	"laneway/shared/model"
	"laneway/shared/transcript"
)

// rows are a session's rows as messages, exactly as they are stored: what a repair
// would have to put right is still wrong in them.
func (s *Sim) rows(sg *sessionGhost) ([]model.Message, error) {
	log := &transcript.Log{Store: s.store.tables}
	m := sg.meta
	entries, err := log.Range(context.Background(), m.Ref, m.SessionID, 1, m.Head)
	if err != nil {
		return nil, err
	}
	var out []model.Message
	for i := range entries {
		e := &entries[i]
		if e.Type == transcript.Message {
			out = append(out, model.Message{Role: e.Role, Content: e.Content, ToolCallID: e.ToolCallID})
		}
	}
	return out, nil
}
