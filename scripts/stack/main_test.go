package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestWhatIsNotACommandChangesNothing(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		nil,
		{"token"},
		{"keys"},
		{"empty"},
		{"drop"},
		{"drop", "-yes"},
		{"drop", "-name", "laneway", "really"},
		{"destroy", "-name", "laneway"},
		{"keys", "-secret", "x", "-force"},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), args, func(string) string { return "set" }, &out); !errors.Is(err, errUsage) || out.Len() > 0 {
			t.Errorf("%v: %v, %q", args, err, out.String())
		}
	}
}

func TestWithoutKeysTheSecretIsNotTouched(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"keys", "-secret", "arn"}, func(string) string { return "" }, &bytes.Buffer{})
	if !errors.Is(err, errNoKeys) {
		t.Errorf("got %v", err)
	}
}

func TestKeysAreAddedToTheSecretAndNeverPrinted(t *testing.T) {
	t.Parallel()
	env := map[string]string{"OPENAI_API_KEY": `a"b`, "HOME": "/root"}
	text, names, err := merge(`{"ANTHROPIC_API_KEY":"old","OPENAI_API_KEY":"older"}`, fromEnvironment(func(k string) string { return env[k] }))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if got["OPENAI_API_KEY"] != `a"b` || got["ANTHROPIC_API_KEY"] != "old" || len(got) != 2 {
		t.Errorf("the secret becomes %v", got)
	}
	if !slices.Equal(names, []string{"OPENAI_API_KEY"}) {
		t.Errorf("stored %v", names)
	}
}

func TestABrokenSecretIsKeptAndNotQuoted(t *testing.T) {
	t.Parallel()
	_, _, err := merge(`sk-not-json`, map[string]string{"OPENAI_API_KEY": "x"})
	if err == nil || strings.Contains(err.Error(), "sk-not-json") {
		t.Errorf("got %v", err)
	}
}
