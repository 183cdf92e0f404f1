package e2e

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"laneway/shared/table/dynamo"
	"laneway/test/mockmodel"
)

// stack is a deployment by the scripts that people use.
type stack struct {
	name  string
	dir   string   // of its logs and settings
	env   []string // of the scripts
	aws   aws.Config
	model *mockmodel.Server
	gateway
}

// deployWithin bounds one deployment, with everything built and installed for the
// first time.
const deployWithin = 10 * time.Minute

func newStack(t *testing.T, name string) *stack {
	t.Helper()
	s := &stack{name: name, dir: t.TempDir(), aws: cloud(t)}
	var modelURL string
	s.model, modelURL = reachableModel(t)
	needTables(t, s.aws)
	if status := s.probe(t, "apigateway", "/v2/apis"); status != http.StatusOK {
		lacksf(t, "the endpoint has no WebSocket APIs (HTTP %d)", status)
	}
	s.env = append(os.Environ(),
		"UP="+s.dir, "OPENAI_BASE_URL="+modelURL, "OPENAI_API_KEY=x", "LANEWAY_MODEL=openai/"+mockmodel.Model,
		"FORCE=true", "ANTHROPIC_API_KEY=")
	return s
}

// reachableModel is a model and the address at which functions reach it: of this
// machine, or where they run in containers, the name that LANEWAY_E2E_MODEL_HOST gives
// this machine there.
func reachableModel(t *testing.T) (model *mockmodel.Server, url string) {
	t.Helper()
	host := os.Getenv("LANEWAY_E2E_MODEL_HOST")
	if host == "" {
		model = mockmodel.New(t)
		return model, model.URL
	}
	model, err := mockmodel.Start("0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	})
	port := model.URL[strings.LastIndexByte(model.URL, ':'):]
	return model, "http://" + host + port
}

// probe is the status of a signed request: what an endpoint says to a service that it
// has not is not the same everywhere.
func (s *stack) probe(t *testing.T, service, path string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(os.Getenv("AWS_ENDPOINT_URL"), "/")+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := s.aws.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // SHA-256 of nothing
	if err := v4.NewSigner().SignHTTP(t.Context(), keys, req, empty, service, s.aws.Region, time.Now()); err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// script runs one of the scripts and gives what it said.
func (s *stack) script(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(within(t, deployWithin), filepath.Join("..", "..", "scripts", name), args...)
	cmd.Env = s.env
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	figure(t, "deployed", "scripts/"+name, []time.Duration{time.Since(began)})
	return string(out)
}

// options are what every deployment of the stack has.
func (s *stack) options(more ...string) []string {
	args := []string{"-c", "laneway.name=" + s.name}
	for _, o := range more {
		args = append(args, "-c", "laneway."+o)
	}
	return args
}

// up deploys, again or for the first time, and reads how to connect.
func (s *stack) up(t *testing.T, options ...string) {
	t.Helper()
	s.script(t, "up.sh", s.options(options...)...)
	f, err := os.Open(filepath.Join(s.dir, "client.env"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "export "), "=")
		switch name {
		case "OPENCLAW_GATEWAY_URL":
			s.URL = value
		case "OPENCLAW_GATEWAY_TOKEN":
			s.Token = value
		}
	}
	s.Level = "deployed"
	s.Tables = dynamo.New(dynamodb.NewFromConfig(s.aws), dynamo.Config{Prefix: s.name + "-"})
}

// errProc says that processes of this machine can't be looked at.
var errProc = errors.New("no /proc")

// processes are the ids of the running processes of a function: those of this
// machine whose environment says that they are this function of this endpoint.
func (s *stack) processes(function string) ([]int, error) {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil, errProc
	}
	var pids []int
	for _, entry := range all {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		environ, err := os.ReadFile("/proc/" + entry.Name() + "/environ")
		if err != nil {
			continue // somebody else's, or gone
		}
		vars := strings.Split(string(environ), "\x00")
		if slices.Contains(vars, "AWS_LAMBDA_FUNCTION_NAME="+s.name+"-"+function) &&
			slices.Contains(vars, "AWS_ENDPOINT_URL="+os.Getenv("AWS_ENDPOINT_URL")) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
