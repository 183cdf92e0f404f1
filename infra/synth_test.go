package main

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
)

// placeholders is a folder of zips that are enough to make a template.
func placeholders(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if _, err := w.Create("bootstrap"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, arch := range []Architecture{ARM64, X8664} {
		dir := filepath.Join(root, string(arch))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, f := range Functions() {
			if err := os.WriteFile(filepath.Join(dir, f+".zip"), b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

// synth makes the template of a context.
func synth(t *testing.T, context map[string]any) (awscdk.Stack, assertions.Template) {
	t.Helper()
	c, err := ParseConfig(context)
	if err != nil {
		t.Fatal(err)
	}
	c.Assets = placeholders(t)
	out := t.TempDir()
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: &out})
	stack := NewStack(app, c)
	return stack, assertions.Template_FromStack(stack, nil)
}

func TestTmp(t *testing.T) {
	_, tpl := synth(t, nil)
	_ = tpl
	t.Log(len(*tpl.ToJSON()))
}
