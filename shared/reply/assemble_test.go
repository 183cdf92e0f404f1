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
		return []reply.Payload{{Text: text, IsError: true, IsWarning: true}}
	}
	for name, c := range map[string]struct {
		in   reply.Input
		want []reply.Payload
	}{
		"an answer":                      {reply.Input{Answers: []string{" Hello\n"}}, []reply.Payload{{Text: "Hello"}}},
		"two answers and a repetition":   {reply.Input{Answers: []string{"One.", "Two.", "one. "}}, []reply.Payload{{Text: "One."}, {Text: "Two."}}},
		"pictographs are no repetition":  {reply.Input{Answers: []string{"👍", "🎉"}}, []reply.Payload{{Text: "👍"}, {Text: "🎉"}}},
		"reasoning first":                {reply.Input{Answers: []string{"Hi"}, Reasoning: "hm"}, []reply.Payload{{Text: "hm", IsReasoning: true}, {Text: "Hi"}}},
		"an error keeps answers back":    {reply.Input{Answers: []string{"Hi"}, Error: "rate limit"}, []reply.Payload{{Text: "rate limit", IsError: true}}},
		"silence":                        {reply.Input{Answers: []string{"NO_REPLY"}}, nil},
		"silence after a failed tool":    {reply.Input{Answers: []string{"NO_REPLY"}, LastToolError: failed}, nil},
		"silence with media":             {reply.Input{Answers: []string{"NO_REPLY"}, Media: []string{"u"}}, []reply.Payload{{Media: []string{"u"}}}},
		"silence does not hide answers":  {reply.Input{Answers: []string{"Hi", "NO_REPLY"}}, []reply.Payload{{Text: "Hi"}}},
		"token at the end":               {reply.Input{Answers: []string{"Hi\nNO_REPLY"}}, []reply.Payload{{Text: "Hi"}}},
		"nothing at all":                 {reply.Input{}, warning(reply.TextIncomplete)},
		"blank answer":                   {reply.Input{Answers: []string{" \n"}}, warning(reply.TextIncomplete)},
		"nothing after tools that act":   {reply.Input{SideEffects: true}, warning(reply.TextSideEffects)},
		"nothing after a failed tool":    {reply.Input{LastToolError: failed}, warning("⚠️ exec failed (exit 3)")},
		"the same, verbose":              {reply.Input{LastToolError: failed, Verbose: true}, warning("⚠️ exec failed (exit 3): boom")},
		"a blocked tool":                 {reply.Input{LastToolError: &reply.ToolFailure{Label: "write", Blocked: true}}, warning("⚠️ write blocked")},
		"a tool that took too long":      {reply.Input{LastToolError: &reply.ToolFailure{Label: "exec", TimedOut: 90 * time.Second}}, warning("⚠️ exec timed out after 90s")},
		"an answer after a failed tool":  {reply.Input{Answers: []string{"Done"}, LastToolError: failed}, []reply.Payload{{Text: "Done"}}},
		"an aborted run owes no excuse":  {reply.Input{Aborted: true, LastToolError: failed}, nil},
		"cut at the limit":               {reply.Input{Answers: []string{"Half"}, OutputLimit: true}, append([]reply.Payload{{Text: "Half"}}, warning(reply.TextOutputLimit)...)},
		"already sent by a tool":         {reply.Input{Answers: []string{long}, Origin: origin, Sent: []reply.Sent{{Text: long, Target: &origin}}}, nil},
		"already sent, place not named":  {reply.Input{Answers: []string{long}, Origin: origin, Sent: []reply.Sent{{Text: strings.ToUpper(long) + " 🎉"}}}, nil},
		"sent to somebody else":          {reply.Input{Answers: []string{long}, Origin: origin, Sent: []reply.Sent{{Text: long, Target: &other}}}, []reply.Payload{{Text: long}}},
		"a heartbeat's acknowledgement":  {reply.Input{Answers: []string{"HEARTBEAT_OK nothing new"}, Heartbeat: true}, nil},
		"a heartbeat with news":          {reply.Input{Answers: []string{"The build is red."}, Heartbeat: true}, []reply.Payload{{Text: "The build is red."}}},
		"a heartbeat whose tool failed":  {reply.Input{Answers: []string{"HEARTBEAT_OK"}, Heartbeat: true, LastToolError: failed}, warning("⚠️ exec failed (exit 3)")},
		"media that a tool already sent": {reply.Input{Answers: []string{"See"}, Media: []string{"a", "b"}, Sent: []reply.Sent{{Media: []string{"a"}}}}, []reply.Payload{{Text: "See", Media: []string{"b"}}}},
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

func TestEmptyScratch(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": true, "# To do\n\n- \n- [ ]\n```\n```\n<!-- a\nb -->\n": true, "1.\n": true,
		"- call Ada": false, "text": false, "- [ ] water plants": false,
	} {
		if got := reply.EmptyScratch(text); got != want {
			t.Errorf("%q: %v", text, got)
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
