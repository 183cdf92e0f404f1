package reply_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"laneway/shared/reply"
)

func TestPayloadsOfARun(t *testing.T) {
	t.Parallel()
	exit := 3
	failed := &reply.ToolFailure{Label: "exec", Error: "boom", ExitCode: &exit}
	long := "The report is written and stands in report.md."
	origin := reply.Target{Channel: "chat", To: "ada"}
	other := reply.Target{Channel: "chat", To: "bob"}
	warning := func(text string) []reply.Payload {
		return []reply.Payload{{Text: text, IsError: true}}
	}
	for name, c := range map[string]struct {
		in   reply.Input
		want []reply.Payload
	}{
		"an answer":                     {reply.Input{Answer: "Hello"}, []reply.Payload{{Text: "Hello"}}},
		"reasoning first":               {reply.Input{Answer: "Hi", Reasoning: "hm"}, []reply.Payload{{Text: "hm", IsReasoning: true}, {Text: "Hi"}}},
		"summaries before it":           {reply.Input{Answer: "Hi", Reasoning: "hm", Summaries: []string{"read"}}, []reply.Payload{{Text: "read", IsSummary: true}, {Text: "hm", IsReasoning: true}, {Text: "Hi"}}},
		"silence":                       {reply.Input{Silent: true}, nil},
		"reasoning without an answer":   {reply.Input{Silent: true, Reasoning: "hm"}, nil},
		"silence after a failed tool":   {reply.Input{Silent: true, LastToolError: failed}, nil},
		"the same, nobody watches":      {reply.Input{Silent: true, LastToolError: failed, Unwatched: true}, warning("⚠️ exec failed (exit 3)")},
		"silence that nobody watches":   {reply.Input{Silent: true, Unwatched: true, SideEffects: true}, nil},
		"nothing at all":                {reply.Input{}, warning(reply.TextIncomplete)},
		"blank answer":                  {reply.Input{Answer: " \n"}, warning(reply.TextIncomplete)},
		"nothing after tools that act":  {reply.Input{SideEffects: true}, warning(reply.TextSideEffects)},
		"nothing after a failed tool":   {reply.Input{LastToolError: failed, SideEffects: true}, warning("⚠️ exec failed (exit 3)")},
		"the same, in full":             {reply.Input{LastToolError: failed, Full: true}, warning("⚠️ exec failed (exit 3): boom")},
		"a blocked tool":                {reply.Input{LastToolError: &reply.ToolFailure{Label: "write", Blocked: true}}, warning("⚠️ write blocked")},
		"a tool that took too long":     {reply.Input{LastToolError: &reply.ToolFailure{Label: "exec", TimedOut: 90 * time.Second}}, warning("⚠️ exec timed out after 90s")},
		"an answer after a failed tool": {reply.Input{Answer: "Done", LastToolError: failed}, []reply.Payload{{Text: "Done"}}},
		"cut at the limit":              {reply.Input{Answer: "Half", OutputLimit: true}, append([]reply.Payload{{Text: "Half"}}, warning(reply.TextOutputLimit)...)},
		"already sent by a tool":        {reply.Input{Answer: long, Origin: origin, Sent: []reply.Sent{{Text: long, Target: &origin}}}, nil},
		"already sent, place not named": {reply.Input{Answer: long, Origin: origin, Sent: []reply.Sent{{Text: strings.ToUpper(long) + " 🎉"}}}, nil},
		"sent to somebody else":         {reply.Input{Answer: long, Origin: origin, Sent: []reply.Sent{{Text: long, Target: &other}}}, []reply.Payload{{Text: long}}},
		"sent, and a tool failed":       {reply.Input{Sent: []reply.Sent{{Text: long}}, LastToolError: failed}, nil},
		"a heartbeat's acknowledgement": {reply.Input{Answer: "HEARTBEAT_OK nothing new", Heartbeat: true}, nil},
		"another run's":                 {reply.Input{Answer: "HEARTBEAT_OK"}, nil},
		"a heartbeat with news":         {reply.Input{Answer: "The build is red.", Heartbeat: true}, []reply.Payload{{Text: "The build is red."}}},
		"a heartbeat whose tool failed": {reply.Input{Answer: "HEARTBEAT_OK", Heartbeat: true, Unwatched: true, LastToolError: failed}, warning("⚠️ exec failed (exit 3)")},
	} {
		if got := reply.Assemble(c.in); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("News. ", 60)
	for _, c := range []struct {
		text string
		run  bool
		rest string
		drop bool
	}{
		{"HEARTBEAT_OK", false, "", true},
		{"HEARTBEAT_OK.", false, "", true},
		{"**HEARTBEAT_OK**", false, "", true},
		{"<b>HEARTBEAT_OK</b>", true, "", true},
		{"HEARTBEAT_OK all quiet", true, "", true},
		{"HEARTBEAT_OK all quiet", false, "all quiet", false},
		{"All quiet. HEARTBEAT_OK", false, "All quiet.", false},
		{"All quiet. HEARTBEAT_OK!!", true, "", true},
		{"HEARTBEAT_OK " + long, true, strings.TrimSpace(long), false},
		{"Say HEARTBEAT_OK when all is quiet", true, "Say HEARTBEAT_OK when all is quiet", false},
		{"HEARTBEAT_OKAY", true, "HEARTBEAT_OKAY", false},
		{"HEARTBEAT_OK_2", true, "HEARTBEAT_OK_2", false},
		{"Hello", true, "Hello", false},
		{"", true, "", false},
	} {
		if rest, drop := reply.Heartbeat(c.text, c.run); rest != c.rest || drop != c.drop {
			t.Errorf("%.40q, run %v: %.40q, %v", c.text, c.run, rest, drop)
		}
	}
}

func TestDuplicatesOfSentMessages(t *testing.T) {
	t.Parallel()
	sent := []reply.Sent{{Text: "The tests are green again."}}
	for text, want := range map[string]bool{
		"The tests are green again.":                           true,
		"the TESTS are   green again. ✅":                       true,
		"Done: The tests are green again.":                     true,
		"tests are green again":                                true,
		"The tests":                                            false, // too short
		"The tests are green again." + strings.Repeat("x", 60): false, // mostly new
		"Something else entirely":                              false,
	} {
		if got := reply.Duplicate(text, reply.Target{}, sent); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if !reply.DuplicatePrefix("The tests ar", reply.Target{}, sent) || reply.DuplicatePrefix("The tests of", reply.Target{}, sent) {
		t.Error("prefixes of sent texts")
	}
	var many []reply.Sent
	for range 200 {
		many = append(many, reply.Sent{Text: "another message that was sent"})
	}
	if reply.Duplicate("The tests are green again.", reply.Target{}, append(sent, many...)) {
		t.Error("remembered more than 200")
	}
}

// TestARepetitionIsHeldBack: a reply that streams is shown as soon as it cannot be the
// repetition of what a tool sent any more, and whole.
func TestARepetitionIsHeldBack(t *testing.T) {
	t.Parallel()
	const sent = "The tests are green again."
	for _, c := range []struct {
		pieces  []string
		shown   []string
		repeats bool
	}{
		{[]string{"The te", "sts are", " green again."}, nil, true},
		{[]string{"The TESTS ", "are green again. ✅"}, nil, true},
		{[]string{"The te", "xt is", " new"}, []string{"The text is", " new"}, false},
		{[]string{"Hello", " there"}, []string{"Hello", " there"}, false},
		{[]string{"The tests"}, []string{"The tests"}, false}, // too short for a repetition
		{nil, nil, false},
	} {
		h := reply.Hold{Sent: []reply.Sent{{Text: sent}}}
		var shown []string
		add := func(s string) {
			if s != "" {
				shown = append(shown, s)
			}
		}
		for _, p := range c.pieces {
			add(h.Push(p))
		}
		rest, repeats := h.Flush()
		add(rest)
		if !reflect.DeepEqual(shown, c.shown) || repeats != c.repeats {
			t.Errorf("%q: shown %q, repeats %v", c.pieces, shown, repeats)
		}
		var none reply.Hold
		if got := none.Push("The tests"); got != "The tests" {
			t.Errorf("nothing was sent: shown %q", got)
		}
	}
}
