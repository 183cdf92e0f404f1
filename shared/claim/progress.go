package claim

import (
	"slices"
	"sync"
	"time"

	"laneway/shared/session"
	"laneway/shared/table"
)

// marks is what a holder knows of its run's progress. It is written with the next
// renewal or commit, never by itself.
type marks struct {
	mu    sync.Mutex
	last  session.Progress
	work  []*session.Work // what is under way, oldest first
	asked int64           // ms of the first model request since something last came back; 0: none
}

// Progress marks a sign of life. It is cheap and may be called for every piece of a
// stream.
func (h *Holder) Progress(why string) {
	now := h.svc.Clock.Now().UnixMilli()
	h.marks.mu.Lock()
	defer h.marks.mu.Unlock()
	h.marks.last.At, h.marks.last.Why = now, why
	h.marks.asked, h.marks.last.Asked = 0, 0
}

// Working marks that something begins, until done is called. Of several things at
// once the one that began first is shown. Since is filled in.
func (h *Holder) Working(w session.Work) (done func()) {
	m := &h.marks
	m.mu.Lock()
	defer m.mu.Unlock()
	w.Since = h.svc.Clock.Now().UnixMilli()
	began, ended := signs(w.Kind)
	m.last.At, m.last.Why = w.Since, began
	if w.Kind == session.WorkModel {
		// A request alone is a sign of life, the same one again and again is not.
		if m.last.Asked = m.asked; m.asked == 0 {
			m.asked = w.Since
		}
	}
	m.work = append(m.work, &w)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		i := slices.Index(m.work, &w)
		if i < 0 {
			return
		}
		m.work = slices.Delete(m.work, i, i+1)
		m.last.At, m.last.Why = h.svc.Clock.Now().UnixMilli(), ended
		if w.Kind == session.WorkTool {
			m.asked, m.last.Asked = 0, 0
		}
	}
}

// signs are the signs of life at both ends of a piece of work.
func signs(kind string) (began, ended string) {
	switch kind {
	case session.WorkModel:
		return session.ProgressModel, session.ProgressModelEnded
	case session.WorkTool:
		return session.ProgressTool, session.ProgressToolEnded
	}
	return session.ProgressStatus, session.ProgressStatus
}

// begun is the first sign of life of an attempt.
func begun(now time.Time) table.SetOp {
	p := session.Progress{At: now.UnixMilli(), Why: session.ProgressRun}
	return table.SetOp{Path: table.P(session.AttrProgress), Value: p.Value()}
}

// addProgress adds the marks to a write of the hot item; to one that ends the run
// their removal. A command has none: what it finds stays.
func (h *Holder) addProgress(op *table.Op) {
	if RunOf(h.owner) == "" {
		return
	}
	for _, p := range op.Remove {
		if p.Attr == session.AttrActive {
			op.Remove = append(op.Remove, table.P(session.AttrProgress))
			return
		}
	}
	m := &h.marks
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.last
	p.Work = session.Work{}
	if len(m.work) > 0 {
		p.Work = *m.work[0]
	}
	op.Set = append(op.Set, table.SetOp{Path: table.P(session.AttrProgress), Value: p.Value()})
}
