package session_test

import (
	"strings"
	"testing"
	"time"

	"laneway/shared/session"
)

func TestProgress_ComesBackAsItWasKept(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]session.Progress{
		"nothing":     {},
		"a run began": {At: 1_772_366_400_000, Why: session.ProgressRun},
		"a model":     {At: 1_772_366_400_000, Why: session.ProgressStream, Work: session.Work{Kind: session.WorkModel, Since: 1_772_366_399_000, Limit: 2 * time.Minute, Rule: "1r"}},
		"a model asked again": {
			At: 5, Why: session.ProgressModel, Asked: 3, Work: session.Work{Kind: session.WorkModel, Since: 5, Limit: -time.Millisecond},
		},
		"a tool":     {At: 7, Why: session.ProgressToolUpdated, Work: session.Work{Kind: session.WorkTool, Tool: "exec", CallID: "call_1", Since: 6}},
		"a question": {At: 7, Why: session.ProgressStatus, Work: session.Work{Kind: session.WorkQuestion, Since: 6}},
		"unknown":    {At: 7, Why: "acp", Work: session.Work{Kind: "other", Since: 1}},
	} {
		if got := session.ParseProgress(p.Value()); got != p {
			t.Errorf("%s: %q became %+v", name, p.Value(), got)
		}
	}
}

// The hot item has room for little: names are cut, on a rune, and cannot break the form.
func TestProgress_IsShort(t *testing.T) {
	t.Parallel()
	p := session.Progress{
		At: 1_772_366_400_000, Why: session.ProgressToolUpdated, Asked: 1_772_366_400_000,
		Work: session.Work{Kind: session.WorkTool, Tool: strings.Repeat("é", 300) + "|", CallID: "a|b" + strings.Repeat("x", 300), Since: 1_772_366_400_000, Limit: time.Hour},
	}
	got := session.ParseProgress(p.Value())
	if n := len(p.Value()); n > 140 {
		t.Errorf("%d bytes", n)
	}
	if got.Work.Tool != strings.Repeat("é", 20) || !strings.HasPrefix(got.Work.CallID, "a_bxx") || got.Work.Since != p.Work.Since || got.Asked != p.Asked {
		t.Errorf("%+v", got)
	}
	if got := session.ParseProgress("!|?"); got.At != 0 || got.Why != "?" {
		t.Errorf("damaged: %+v", got)
	}
}
