package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"laneway/shared/model"
	"laneway/shared/tool"
)

// probe is a tool that records what reached it.
type probe struct {
	spec tool.Spec
	run  func(ctx context.Context, call tool.Call) (tool.Result, error)
}

func (p probe) Spec() tool.Spec { return p.spec }

func (p probe) Run(ctx context.Context, call tool.Call) (tool.Result, error) { return p.run(ctx, call) }

const schema = `{"type":"object","properties":{
	"path":{"type":"string"},
	"limit":{"type":"integer","minimum":1},
	"deep":{"type":"boolean"},
	"tags":{"type":"array","items":{"type":"string"}},
	"where":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"],"additionalProperties":false}
},"required":["path"],"additionalProperties":false}`

// echo returns its arguments as text.
func echo(name string) probe {
	return probe{
		spec: tool.Spec{Name: name, Description: "echo", Schema: json.RawMessage(schema)},
		run: func(_ context.Context, call tool.Call) (tool.Result, error) {
			return tool.TextResult(string(call.Arguments)), nil
		},
	}
}

func registry(t *testing.T, tools ...tool.Tool) *tool.Registry {
	t.Helper()
	r, err := tool.NewRegistry(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func call(name, args string) tool.Call {
	return tool.Call{ID: "c1", Name: name, Arguments: json.RawMessage(args)}
}

func text(r tool.Result) string {
	var b strings.Builder
	for _, block := range r.Content {
		b.WriteString(block.Text)
	}
	return b.String()
}

func TestRegistryRefusesMistakesOfTheProgram(t *testing.T) {
	t.Parallel()
	bad := map[string][]tool.Tool{
		"taken name":      {echo("a"), echo("a")},
		"bad name":        {echo("a b")},
		"no JSON":         {probe{spec: tool.Spec{Name: "a", Schema: json.RawMessage(`{`)}}},
		"no object":       {probe{spec: tool.Spec{Name: "a", Schema: json.RawMessage(`{"type":"string"}`)}}},
		"bad schema":      {probe{spec: tool.Spec{Name: "a", Schema: json.RawMessage(`{"type":"object","properties":7}`)}}},
		"other documents": {probe{spec: tool.Spec{Name: "a", Schema: json.RawMessage(`{"type":"object","$ref":"file:///etc/passwd"}`)}}},
	}
	for name, tools := range bad {
		if _, err := tool.NewRegistry(tools...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestToolsAreToldInTheOrderOfRegistration(t *testing.T) {
	t.Parallel()
	r := registry(t, echo("zeta"), echo("alpha"), echo("mid"))
	for i, want := range []string{"zeta", "alpha", "mid"} {
		if r.Specs()[i].Name != want || r.ForModel()[i].Name != want {
			t.Errorf("place %d: %s, %s, want %s", i, r.Specs()[i].Name, r.ForModel()[i].Name, want)
		}
	}
	kept := r.Only(func(name string) bool { return name != "zeta" })
	if _, ok := kept.Lookup("zeta"); ok || len(kept.Specs()) != 2 {
		t.Errorf("kept %v", kept.Specs())
	}
}

func TestArgumentsThatFitReachTheToolAsTheyCame(t *testing.T) {
	t.Parallel()
	r := registry(t, echo("echo"))
	args := `{"path": "a",  "limit":2}`
	if got := text(tool.Execute(t.Context(), r, call("echo", args))); got != args {
		t.Errorf("got %s", got)
	}
}

func TestNearMissesAreRepaired(t *testing.T) {
	t.Parallel()
	r := registry(t, echo("echo"))
	for given, want := range map[string]string{
		`{"path":"a","limit":"5"}`:                `{"limit":5,"path":"a"}`,
		`{"path":"a","limit":5.0}`:                `{"limit":5,"path":"a"}`,
		`{"path":"a","limit":1e2}`:                `{"limit":100,"path":"a"}`,
		`{"path":"a","deep":"true"}`:              `{"deep":true,"path":"a"}`,
		`{"path":"a","limit":null}`:               `{"path":"a"}`,
		`{"path":7}`:                              `{"path":"7"}`,
		`{"path":"a","tags":[1,"b",true]}`:        `{"path":"a","tags":["1","b","true"]}`,
		`{"path":"a","tags":"[\"x\"]"}`:           `{"path":"a","tags":["x"]}`,
		`{"path":"a","where":"{\"x\":\"1.5\"}"}`:  `{"path":"a","where":{"x":1.5}}`,
		`{"path":"a","limit":9007199254740993.0}`: `{"limit":9007199254740993,"path":"a"}`,
	} {
		if got := text(tool.Execute(t.Context(), r, call("echo", given))); got != want {
			t.Errorf("%s became %s, want %s", given, got, want)
		}
	}
}

func TestArgumentsThatDoNotFitAreAnErrorForTheModel(t *testing.T) {
	t.Parallel()
	ran := false
	p := echo("echo")
	p.run = func(context.Context, tool.Call) (tool.Result, error) { ran = true; return tool.Result{}, nil }
	r := registry(t, p)
	for args, bullets := range map[string][]string{
		`{}`:                               {"  - path: is required\n"},
		``:                                 {"  - path: is required\n"},
		`{"path":"a","limit":0}`:           {"  - limit: "},
		`{"path":"a","limit":1.5}`:         {"  - limit: "},
		`{"path":null}`:                    {"  - path: "},
		`{"path":"a","pfad":1,"limit":[]}`: {"  - pfad: is not a parameter of this tool\n", "  - limit: "},
		`{"path":"a","where":{"y":1}}`:     {"  - where.x: is required\n", "  - where.y: is not a parameter"},
		`{"path":"a"`:                      {"  - root: the arguments are not valid JSON\n"},
		`["a"]`:                            {"  - root: "},
		`{"path":"a","limit":1e999999999}`: {"  - limit: "},
	} {
		got := tool.Execute(t.Context(), r, call("echo", args))
		if !got.IsError || !strings.HasPrefix(text(got), "Validation failed for tool \"echo\":\n") {
			t.Errorf("%s: %+v", args, got)
		}
		for _, b := range bullets {
			if !strings.Contains(text(got), b) {
				t.Errorf("%s: %q is missing in\n%s", args, b, text(got))
			}
		}
		if got.Details["errorKind"] != "argument-validation" {
			t.Errorf("%s: details %v", args, got.Details)
		}
	}
	if ran {
		t.Error("the tool ran")
	}
	got := text(tool.Execute(t.Context(), r, call("echo", `{"limit":3}`)))
	if !strings.HasSuffix(got, "\nReceived arguments:\n{\n  \"limit\": 3\n}") {
		t.Errorf("what was received is not shown:\n%s", got)
	}
}

func TestCheckAgreesWithItself(t *testing.T) {
	t.Parallel()
	r := registry(t, echo("echo"))
	value := rapid.SampledFrom([]string{`"5"`, `5`, `5.0`, `null`, `true`, `"true"`, `[]`, `["1",2]`, `{"x":"2"}`, `"{}"`, `""`, `-1e3`})
	rapid.Check(t, func(t *rapid.T) {
		args := map[string]json.RawMessage{}
		for _, name := range []string{"path", "limit", "deep", "tags", "where"} {
			if rapid.Bool().Draw(t, name) {
				args[name] = json.RawMessage(value.Draw(t, name+" value"))
			}
		}
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		once, err := r.Check(call("echo", string(raw)))
		if err != nil {
			var invalid *tool.ArgumentError
			if !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
				t.Fatalf("%s: %v", raw, err)
			}
			return
		}
		twice, err := r.Check(once)
		if err != nil || string(twice.Arguments) != string(once.Arguments) {
			t.Fatalf("%s became %s, then %s, %v", raw, once.Arguments, twice.Arguments, err)
		}
	})
}

func TestUnknownToolIsAnErrorForTheModel(t *testing.T) {
	t.Parallel()
	got := tool.Execute(t.Context(), registry(t), call("nope", `{}`))
	if !got.IsError || text(got) != "Tool nope not found" {
		t.Errorf("%+v", got)
	}
}

func TestAFailingToolIsAnErrorForTheModel(t *testing.T) {
	t.Parallel()
	p := echo("echo")
	p.run = func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Details: map[string]any{"exitCode": 2}}, errors.New("disk is full")
	}
	got := tool.Execute(t.Context(), registry(t, p), call("echo", `{"path":"a"}`))
	if !got.IsError || text(got) != "disk is full" || got.Details["exitCode"] != 2 {
		t.Errorf("%+v", got)
	}
}

func TestAPanicIsAnErrorForTheModelAndTellsNoSecret(t *testing.T) {
	t.Parallel()
	p := echo("echo")
	p.run = func(_ context.Context, c tool.Call) (tool.Result, error) { panic("with " + string(c.Arguments)) }
	got := tool.Execute(t.Context(), registry(t, p), call("echo", `{"path":"hunter2"}`))
	if !got.IsError || text(got) != "tool echo failed with an internal error" {
		t.Errorf("%+v", got)
	}
}

func TestAnEndedContextStartsNothing(t *testing.T) {
	t.Parallel()
	p := echo("echo")
	p.run = func(context.Context, tool.Call) (tool.Result, error) {
		t.Error("the tool ran")
		return tool.Result{}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := tool.Execute(ctx, registry(t, p), call("echo", `{"path":"a"}`))
	if !got.IsError || text(got) != tool.TextAborted {
		t.Errorf("%+v", got)
	}
}

func TestAToolStoppedByItsContextSaysAborted(t *testing.T) {
	t.Parallel()
	p := echo("echo")
	started := make(chan struct{})
	p.run = func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		close(started)
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	got := tool.Execute(ctx, registry(t, p), call("echo", `{"path":"a"}`))
	if !got.IsError || text(got) != tool.TextAborted {
		t.Errorf("%+v", got)
	}
}

func TestAnEmptyResultIsStillAnAnswer(t *testing.T) {
	t.Parallel()
	p := echo("echo")
	p.run = func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }
	got := tool.Execute(t.Context(), registry(t, p), call("echo", `{"path":"a"}`))
	if got.IsError || text(got) != tool.TextNothing {
		t.Errorf("%+v", got)
	}
}

func TestProgressAfterTheEndIsDropped(t *testing.T) {
	t.Parallel()
	p := echo("echo")
	var late func(tool.Result)
	p.run = func(_ context.Context, c tool.Call) (tool.Result, error) {
		c.Update(tool.TextResult("half"))
		late = c.Update
		return tool.TextResult("whole"), nil
	}
	var seen []string
	c := call("echo", `{"path":"a"}`)
	c.Update = func(r tool.Result) { seen = append(seen, text(r)) }
	tool.Execute(t.Context(), registry(t, p), c)
	late(tool.TextResult("too late"))
	if len(seen) != 1 || seen[0] != "half" {
		t.Errorf("seen %q", seen)
	}
}

func TestPlanIsSequentialAsSoonAsOneToolAsksForIt(t *testing.T) {
	t.Parallel()
	slow := echo("slow")
	slow.spec.Sequential = true
	r := registry(t, echo("fast"), slow)
	calls := func(names ...string) (blocks []model.Block) {
		for _, n := range names {
			blocks = append(blocks, model.Block{Type: model.ToolCall, Name: n})
		}
		return blocks
	}
	if tool.Plan(calls("fast", "fast", "unknown"), r) {
		t.Error("nobody asked for it")
	}
	if !tool.Plan(calls("fast", "slow", "fast"), r) {
		t.Error("one asked for it")
	}
}

func TestBatchRunsInOrderWhenSequential(t *testing.T) {
	t.Parallel()
	var order []int
	tool.RunBatch(t.Context(), 5, true, func(_ context.Context, i int) { order = append(order, i) })
	for i, got := range order {
		if got != i {
			t.Fatalf("order %v", order)
		}
	}
	if len(order) != 5 {
		t.Errorf("ran %d", len(order))
	}
}

func TestBatchRunsSideBySideAndEndsWithTheLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 40
		var mu sync.Mutex
		running, most, done := 0, 0, 0
		gate := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			tool.RunBatch(t.Context(), n, false, func(context.Context, int) {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				<-gate
				mu.Lock()
				running--
				done++
				mu.Unlock()
			})
		}()
		synctest.Wait()
		mu.Lock()
		if most < 2 || most > 16 {
			t.Errorf("%d at a time", most)
		}
		mu.Unlock()
		select {
		case <-ended:
			t.Error("the batch ended before its calls")
		default:
		}
		close(gate)
		<-ended
		if done != n || running != 0 {
			t.Errorf("done %d, running %d", done, running)
		}
	})
}
