package model

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTransitionsAreInTheCode looks for the function of each transition. Where one was
// renamed or taken away the model is to be read beside the code again.
func TestTransitionsAreInTheCode(t *testing.T) {
	t.Parallel()
	there := map[string]map[string]bool{}
	for o := range ops {
		name := ops[o].fn
		if ops[o].text == "" {
			t.Errorf("transition %d has no words", o)
		}
		if name == "" {
			continue
		}
		pkg, fn, _ := strings.Cut(name, ".")
		if there[pkg] == nil {
			there[pkg] = functions(t, filepath.Join("..", "..", "shared", pkg))
		}
		if !there[pkg][fn] {
			t.Errorf("%q: shared/%s has no function %s", ops[o].text, pkg, fn)
		}
	}
	if len(there) < 6 || there["lane"]["NoSuchFunction"] {
		t.Fatalf("looked into %d packages only", len(there))
	}
}

// functions are those of a package, as Function or Type.Method.
func functions(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, f.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := fn.Name.Name
			if fn.Recv != nil {
				on := fn.Recv.List[0].Type
				if p, ok := on.(*ast.StarExpr); ok {
					on = p.X
				}
				if id, ok := on.(*ast.Ident); ok {
					name = id.Name + "." + name
				}
			}
			out[name] = true
		}
	}
	return out
}
