// Package arch keeps the shape of the tree: which package may know which other one,
// that each says what it guarantees, and that no file grows too big to read.
package arch

import (
	"bytes"
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "laneway"

// maxFile is where a file is too big to be one idea.
const maxFile = 25 << 10

// pkg is what `go list` says about a package of this module.
type pkg struct {
	ImportPath   string
	Dir          string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	Deps         []string
}

// root is the directory of go.mod.
func root(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,Deps", "./...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 5 {
		t.Fatalf("go list found only %d packages: it looked at the wrong place", len(all))
	}
	return all
}

func (p pkg) rel() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// rule forbids what is reached, directly or through others, from some packages.
type rule struct {
	why  string
	from func(rel string) bool
	deny func(dep string) bool
	// direct looks at the package's own imports only.
	direct bool
}

// adapter says whether a package is one that knows AWS by trade.
func adapter(rel string) bool {
	for part := range strings.SplitSeq(rel, "/") {
		switch part {
		case "dynamo", "sqs", "s3", "s3sign", "apigw", "bedrock":
			return true
		}
	}
	return strings.HasPrefix(rel, "shared/aws")
}

func under(rel string, dirs ...string) bool {
	for _, d := range dirs {
		if rel == d || strings.HasPrefix(rel, d+"/") {
			return true
		}
	}
	return false
}

// faultKit is a test that users run too, as a command.
const faultKit = module + "/test/fault"

func awsPackage(dep string) bool { return strings.HasPrefix(dep, "github.com/aws/") }

// core are the packages of the domain: what is said, the durable core, one turn,
// what comes out, and the ports themselves.
var core = []string{
	"shared/protocol", "shared/rpc", "shared/lane", "shared/claim", "shared/session", "shared/transcript", "shared/run",
	"shared/loop", "shared/prompt", "shared/tool", "shared/reply", "shared/stream", "shared/compact", "shared/hook", "shared/cron",
	"shared/diag", "shared/audit", "shared/workspace", "shared/id", "shared/clock", "shared/chars", "shared/meter", "shared/client",
}

var rules = []rule{
	{
		why:  "the core, with everything it reaches, imports no AWS package",
		from: func(rel string) bool { return under(rel, core...) },
		deny: awsPackage,
	},
	{
		why: "ports and models know AWS only in their adapters",
		// The single-machine edition hands API Gateway's own events to the handlers.
		from:   func(rel string) bool { return under(rel, "shared") && !adapter(rel) && rel != "shared/local" },
		deny:   awsPackage,
		direct: true,
	},
	{
		why:  "the gateway function reaches no model SDK",
		from: func(rel string) bool { return under(rel, "functions/gateway") },
		deny: func(dep string) bool {
			return strings.HasPrefix(dep, "github.com/openai/") || strings.HasPrefix(dep, "github.com/anthropics/") ||
				dep == "github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
		},
	},
	{
		why:    "the single-machine edition knows AWS by its events only",
		from:   func(rel string) bool { return rel == "shared/local" },
		deny:   func(dep string) bool { return awsPackage(dep) && dep != "github.com/aws/aws-lambda-go/events" },
		direct: true,
	},
	{
		why:  "nothing but cmd and tests imports the single-machine edition",
		from: func(rel string) bool { return !under(rel, "cmd", "test", "shared/local") },
		deny: func(dep string) bool { return dep == module+"/shared/local" },
	},
	{
		why:  "what runs in a function knows neither the command line nor test doubles",
		from: func(rel string) bool { return under(rel, "functions") },
		deny: func(dep string) bool {
			return dep == "testing" || dep == "net/http/httptest" || strings.HasPrefix(dep, "github.com/alecthomas/kong") ||
				strings.HasPrefix(dep, module+"/test/")
		},
	},
	{
		why:  "product code imports no test package",
		from: func(rel string) bool { return !under(rel, "test") && !strings.HasSuffix(rel, "test") },
		deny: func(dep string) bool {
			return dep == "testing" || strings.HasPrefix(dep, module+"/test/") && dep != faultKit
		},
		direct: true,
	},
	{
		why:  "nothing but the command line brings the fault kit along",
		from: func(rel string) bool { return !under(rel, "cmd/laneway", "test") },
		deny: func(dep string) bool { return dep == faultKit },
	},
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	all := packages(t)
	for _, r := range rules {
		t.Run(r.why, func(t *testing.T) {
			t.Parallel()
			for _, p := range all {
				if !r.from(p.rel()) {
					continue
				}
				deps := p.Deps
				if r.direct {
					deps = p.Imports
				}
				for _, d := range deps {
					if r.deny(d) {
						t.Errorf("%s reaches %s", p.rel(), d)
					}
				}
			}
		})
	}
}

// The rules are only worth something if they would notice: each must refuse the
// import that it was made for.
func TestRulesWouldNotice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, dep string }{
		{"shared/lane", "github.com/aws/aws-sdk-go-v2/aws"},
		{"shared/table/bolt", "github.com/aws/aws-sdk-go-v2/service/dynamodb"},
		{"shared/local", "github.com/aws/aws-sdk-go-v2/service/sqs"},
		{"functions/gateway", "github.com/openai/openai-go/v3"},
		{"shared/rpc", module + "/shared/local"},
		{"functions/runner", "net/http/httptest"},
		{"shared/loop", module + "/test/mockmodel"},
		{"shared/loop", module + "/test/fault"},
	} {
		noticed := false
		for _, r := range rules {
			noticed = noticed || r.from(c.from) && r.deny(c.dep)
		}
		if !noticed {
			t.Errorf("no rule refuses that %s imports %s", c.from, c.dep)
		}
	}
	for _, ok := range []string{"shared/table/dynamo", "shared/model/bedrock"} {
		if !adapter(ok) {
			t.Errorf("%s is an adapter", ok)
		}
	}
}

func TestPackagesSayWhatTheyGuarantee(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		files := p.GoFiles
		if len(files) == 0 { // only tests: their comment counts
			files = slices.Concat(p.TestGoFiles, p.XTestGoFiles)
		}
		if len(files) == 0 {
			continue
		}
		said := false
		for _, f := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, f), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Error(err)
				continue
			}
			doc := parsed.Doc.Text()
			said = said || strings.HasPrefix(doc, "Package ") || strings.HasPrefix(doc, "Command ")
		}
		if !said {
			t.Errorf("%s has no package comment", p.rel())
		}
	}
}

func TestFilesAreSmall(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		for _, f := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			info, err := os.Stat(filepath.Join(p.Dir, f))
			if err != nil {
				t.Error(err)
				continue
			}
			if info.Size() > maxFile {
				t.Errorf("%s/%s has %d KB, more than %d", p.rel(), f, info.Size()>>10, maxFile>>10)
			}
		}
	}
}

// Every linter that is turned off has its reason above it, or beside it.
func TestDisabledLintersAreExplained(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join(root(t), ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(b), "\n  disable:\n")
	if !found {
		t.Fatal("no list of disabled linters")
	}
	item := regexp.MustCompile(`^    - \S+`)
	explained, seen := false, 0
	for line := range strings.SplitSeq(list, "\n") {
		switch {
		case strings.HasPrefix(line, "    #"):
			explained = true
		case item.MatchString(line):
			seen++
			if !explained && !strings.Contains(line, "#") {
				t.Errorf("no reason for %q", strings.TrimSpace(line))
			}
			explained = false
		default:
			if seen == 0 {
				t.Fatal("the list is empty")
			}
			return
		}
	}
}
