package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestModelsCheck(t *testing.T) {
	t.Parallel()
	good := filepath.Join(t.TempDir(), "good.json")
	bad := filepath.Join(t.TempDir(), "bad.json")
	for path, text := range map[string]string{
		good: `{"providers": {"x": {"api": "openai-completions", "models": [{"id": "a"}]}}}`,
		bad:  `{"providers": {"x": {"api": "openai-completions", "apiKey": "sk-hunter2"}}}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		file string
		code int
		says string
	}{
		{good, exitOK, "is fine: 1 providers, 1 models"},
		{bad, exitFailure, "providers.x.apiKey: must name what holds the key"},
		{good + ".not", exitFailure, "no such file"},
	} {
		w := setup(t)
		code := w.run("models", "check", row.file)
		if out := w.out.String() + w.err.String(); code != row.code || !strings.Contains(out, row.says) || strings.Contains(out, "hunter2") {
			t.Errorf("%s: %d, %s", row.file, code, out)
		}
	}
}
