package loop

import (
	"context"
	"errors"
	"strings"

	"laneway/shared/session"
)

// notice tells people once that another model than the chosen one answered, and once
// that the chosen one is back. What was told is in the session's entry with the run that
// told it, so that neither a crash nor another run tells it again.
func (a *attempt) notice(ctx context.Context) string {
	if a.r.Chains == nil || len(a.chain.all) == 0 {
		return ""
	}
	selected, active := a.chain.all[0].Ref(), a.sel.Name+"/"+a.sel.Model
	told := a.entry.Fallback
	if active == selected {
		if told == nil {
			return ""
		}
		a.setNotice(ctx, nil)
		return ""
	}
	if told != nil && told.Selected == selected && told.Active == active {
		if told.Run == a.st.Ref.Run {
			return noticeText(told)
		}
		return ""
	}
	n := &session.FallbackNotice{Selected: selected, Active: active, Reason: a.whyPassed(selected), Run: a.st.Ref.Run}
	if !a.setNotice(ctx, n) {
		return ""
	}
	return noticeText(n)
}

func noticeText(n *session.FallbackNotice) string {
	return "↪️ Model Fallback: " + n.Active + " (selected " + n.Selected + "; " + strings.ReplaceAll(n.Reason, "_", " ") + ")"
}

// whyPassed is why a model was given up.
func (a *attempt) whyPassed(ref string) string {
	for _, p := range a.chk.Route.Passed {
		if p.Ref == ref {
			return string(p.Reason)
		}
	}
	return "unavailable"
}

var errTold = errors.New("told already")

// setNotice writes what was told, and says whether it is this run's to tell.
func (a *attempt) setNotice(ctx context.Context, n *session.FallbackNotice) bool {
	e, err := session.UpdateEntry(ctx, a.r.Store, a.ref, func(e *session.Entry) error {
		if n != nil && e.Fallback != nil && e.Fallback.Selected == n.Selected && e.Fallback.Active == n.Active && e.Fallback.Run != n.Run {
			return errTold // by a run beside this one
		}
		e.Fallback = n
		return nil
	})
	if err != nil {
		if !errors.Is(err, errTold) {
			a.r.Logger.Warn("fallback notice not kept", "session", a.ref.Hash(), "err", err)
		}
		return false
	}
	a.entry.Fallback = e.Fallback
	return true
}
