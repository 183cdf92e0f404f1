package stoptimes_test

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"laneway/shared/client"
	"laneway/shared/protocol"
	"laneway/test/mockmodel"
	"laneway/test/serving"
	"laneway/test/stoptimes"
)

func TestMain(m *testing.M) {
	code := m.Run()
	serving.Cleanup()
	os.Exit(code)
}

func TestStopTimes(t *testing.T) { //nolint:paralleltest // it measures
	n, err := strconv.Atoi(cmp.Or(os.Getenv(stoptimes.EnvAborts), "5"))
	if err != nil {
		t.Fatalf("%s: %v", stoptimes.EnvAborts, err)
	}
	t.Run("one machine", func(t *testing.T) {
		measure(t, n)
	})
	t.Run("stores at an endpoint", func(t *testing.T) {
		endpoint := os.Getenv("AWS_ENDPOINT_URL")
		if endpoint == "" {
			t.Skip("not run: stops over the stores of AWS need AWS_ENDPOINT_URL")
		}
		var env []string
		for _, v := range os.Environ() {
			if strings.HasPrefix(v, "AWS_") {
				env = append(env, v)
			}
		}
		stack := fmt.Sprintf("stop%d", time.Now().UnixNano()%1_000_000)
		measure(t, max(n/4, 1), serving.Options{Args: []string{"--backend", "aws", "--stack", stack, "--create"}, Env: env})
	})
}

func measure(t *testing.T, n int, opts ...serving.Options) {
	t.Helper()
	model := mockmodel.New(t)
	o := serving.Options{}
	if len(opts) > 0 {
		o = opts[0]
	}
	o.Env = append(o.Env, "OPENAI_BASE_URL="+model.URL, "OPENAI_API_KEY=x", "LANEWAY_MODEL=openai/"+mockmodel.Model)
	g := serving.Start(t, o)
	c, err := client.Dial(t.Context(), client.Config{URL: g.URL, Token: serving.Token, Scopes: []string{protocol.ScopeAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, line := range stoptimes.Measure(t, n, c, model) {
		t.Log(line)
	}
}
