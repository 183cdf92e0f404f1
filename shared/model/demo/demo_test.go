package demo

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"laneway/shared/model"
	"laneway/shared/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func txt(s string) []model.Block { return []model.Block{{Type: model.Text, Text: s}} }

func user(s string) model.Message { return model.Message{Role: model.User, Content: txt(s)} }

func result(tool, id, s string) model.Message {
	return model.Message{Role: model.ToolResult, ToolName: tool, ToolCallID: id, Content: txt(s)}
}

var both = []model.Tool{{Name: "read"}, {Name: "ls"}, {Name: "session_status"}}

func stream(t *testing.T, r model.Request) modeltest.Turn {
	t.Helper()
	return modeltest.Collect(t, New(Config{Pause: -1}).Stream(t.Context(), r))
}

func TestAsksForBothToolsAndAnswersFromTheirResults(t *testing.T) {
	t.Parallel()
	r := model.Request{Tools: both, Messages: []model.Message{user("What time is it, and what is in this folder?")}}
	first := stream(t, r)
	if !strings.HasPrefix(first.Text(), Intro) || first.Done == nil || first.Done.StopReason != "toolUse" {
		t.Fatalf("first turn = %+v", first)
	}
	want := []model.Block{
		{Type: model.ToolCall, ID: "demo_1", Name: "session_status", Arguments: json.RawMessage(`{}`)},
		{Type: model.ToolCall, ID: "demo_2", Name: "ls", Arguments: json.RawMessage(`{"path":"."}`)},
	}
	if !reflect.DeepEqual(first.Calls, want) {
		t.Fatalf("calls = %+v", first.Calls)
	}

	r.Messages = append(r.Messages, model.Message{Role: model.Assistant, Content: append(txt(first.Text()), first.Calls...)},
		result("session_status", "demo_1", "Model: demo\nTime: 12:34 UTC\n"), result("ls", "demo_2", "README.md\nsrc/"))
	second := stream(t, r)
	for _, s := range []string{Intro, "Time: 12:34 UTC", "README.md", "src/"} {
		if !strings.Contains(second.Text(), s) {
			t.Errorf("answer lacks %q: %s", s, second.Text())
		}
	}
	if len(second.Calls) != 0 || second.Done == nil || second.Done.StopReason != "stop" {
		t.Errorf("second turn = %+v", second)
	}
	if strings.Contains(second.Text(), "Model: demo") {
		t.Errorf("the answer to a question for the time has more: %s", second.Text())
	}

	r.Messages = append(r.Messages, model.Message{Role: model.Assistant, Content: txt(second.Text())}, user("And the folder now?"))
	third := stream(t, r)
	if len(third.Calls) != 1 || third.Calls[0].ID != "demo_3" {
		t.Errorf("a later question: calls = %+v", third.Calls)
	}
}

func TestEveryAnswerSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]model.Request{
		"plain":        {Messages: []model.Message{user("hello")}},
		"no text":      {Messages: []model.Message{{Role: model.User, Content: []model.Block{{Type: model.Image}}}}},
		"no messages":  {},
		"no tools":     {Messages: []model.Message{user("list the files")}},
		"forced tool":  {Messages: []model.Message{user("x")}, Tools: both, ToolChoice: "read"},
		"failed tool":  {Messages: []model.Message{user("files?"), {Role: model.ToolResult, ToolName: "ls", IsError: true, Content: txt("denied")}}},
		"empty result": {Messages: []model.Message{user("files?"), result("ls", "a", "")}},
		"other tool":   {Messages: []model.Message{user("x"), result("read", "a", "text")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turn := stream(t, r)
			if !strings.HasPrefix(turn.Text(), Intro) {
				t.Errorf("answer = %q", turn.Text())
			}
			if again := stream(t, r); !cmp.Equal(turn, again) {
				t.Errorf("the same request gave %+v, then %+v", turn, again)
			}
		})
	}
}

func TestRepeatsWhatWasSaid(t *testing.T) {
	t.Parallel()
	turn := stream(t, model.Request{Tools: both, Messages: []model.Message{user("good morning")}})
	if !strings.Contains(turn.Text(), "“good morning”") || len(turn.Calls) != 0 {
		t.Errorf("turn = %+v", turn)
	}
	long := stream(t, model.Request{Messages: []model.Message{user(strings.Repeat("é", 5000))}})
	if n := strings.Count(long.Text(), "é"); n != 400 {
		t.Errorf("repeats %d characters", n)
	}
}

func TestSaysWhichToolIsMissing(t *testing.T) {
	t.Parallel()
	turn := stream(t, model.Request{Messages: []model.Message{user("which files?")}})
	if !strings.Contains(turn.Text(), "not given: ls.") || len(turn.Calls) != 0 {
		t.Errorf("turn = %+v", turn)
	}
}

func TestForcedTool(t *testing.T) {
	t.Parallel()
	turn := stream(t, model.Request{Tools: both, ToolChoice: "read", Messages: []model.Message{user("x")}})
	if len(turn.Calls) != 1 || turn.Calls[0].Name != "read" || turn.Done.StopReason != "toolUse" {
		t.Errorf("turn = %+v", turn)
	}
}

func TestLongListingIsCut(t *testing.T) {
	t.Parallel()
	turn := stream(t, model.Request{Messages: []model.Message{user("files?"), result("ls", "a", strings.Repeat("file\n", 1000))}})
	if n := strings.Count(turn.Text(), "file\n") + strings.Count(turn.Text(), "\n… and more"); n > maxLines+1 || !strings.HasSuffix(turn.Text(), "… and more") {
		t.Errorf("answer = %s", turn.Text())
	}
}

func TestStreamsWordByWordWithPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		turn := modeltest.Collect(t, New(Config{Pause: 10 * time.Millisecond}).Stream(t.Context(), model.Request{Messages: []model.Message{user("hi")}}))
		words := len(strings.Fields(turn.Text()))
		if len(turn.Texts) != words || time.Since(start) != time.Duration(words-1)*10*time.Millisecond {
			t.Errorf("%d parts for %d words in %s", len(turn.Texts), words, time.Since(start))
		}
		if turn.Usage.Output != int64(words) || turn.Usage.Input != 1 {
			t.Errorf("usage = %+v", turn.Usage)
		}
	})
}

func TestCancelInMidStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(35*time.Millisecond, cancel)
		turn := modeltest.Collect(t, New(Config{Pause: 10 * time.Millisecond}).Stream(ctx, model.Request{Messages: []model.Message{user("hi")}}))
		if turn.Err == nil || turn.Err.Class != model.Aborted || len(turn.Texts) != 4 {
			t.Errorf("turn = %+v", turn)
		}
	})
}

func TestLeavingTheRange(t *testing.T) {
	t.Parallel()
	n := 0
	for range New(Config{Pause: -1}).Stream(t.Context(), model.Request{Tools: both, Messages: []model.Message{user("files")}}) {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d parts", n)
	}
}
