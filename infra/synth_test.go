package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"
)

// jsiiLock is held around every call into CDK, whose process serves one at a time.
var jsiiLock sync.Mutex

// assets and outputs are folders that live as long as the test binary.
var assets, outputs string

func TestMain(m *testing.M) {
	code, err := withFolders(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// withFolders makes zips that are enough for a template, runs, and cleans up.
func withFolders(run func() int) (code int, err error) {
	defer jsii.Close()
	root, err := os.MkdirTemp("", "infra")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	assets, outputs = filepath.Join(root, "assets"), filepath.Join(root, "out")
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	_, created := w.Create("bootstrap")
	if err := errors.Join(created, w.Close(), os.Mkdir(outputs, 0o700)); err != nil {
		return 0, err
	}
	for _, a := range []Architecture{ARM64, X8664} {
		for _, f := range Functions() {
			c := Config{Assets: assets, Architecture: a}
			path := c.asset(f)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
				return 0, err
			}
		}
	}
	return run(), nil
}

// template is a synthesized stack: CDK's own matchers over it, and its JSON.
type template struct {
	matcher   assertions.Template
	notes     assertions.Annotations
	Resources map[string]resource
	Outputs   map[string]struct{ Value any }
	text      string
}

type resource struct {
	Type                string
	Properties          map[string]any
	DependsOn           any
	DeletionPolicy      string
	UpdateReplacePolicy string
}

var (
	templates     = map[string]*template{}
	templatesLock sync.Mutex
)

// synth makes the template of a context, given as key and value in turn, once.
func synth(t *testing.T, keysAndValues ...string) *template {
	t.Helper()
	templatesLock.Lock()
	defer templatesLock.Unlock()
	key := strings.Join(keysAndValues, " ")
	if have, ok := templates[key]; ok {
		return have
	}
	context := map[string]any{}
	for pair := range slices.Chunk(keysAndValues, 2) {
		context[pair[0]] = pair[1]
	}
	c, err := ParseConfig(context)
	if err != nil {
		t.Fatal(err)
	}
	c.Assets = assets
	made, err := synthesize(c)
	if err != nil {
		t.Fatal(err)
	}
	templates[key] = made
	return made
}

func synthesize(c Config) (*template, error) {
	jsiiLock.Lock()
	defer jsiiLock.Unlock()
	out, err := os.MkdirTemp(outputs, "synth")
	if err != nil {
		return nil, err
	}
	stack := NewStack(NewApp(out), c)
	made := &template{notes: assertions.Annotations_FromStack(stack), matcher: assertions.Template_FromStack(stack, nil)}
	text, err := json.MarshalIndent(made.matcher.ToJSON(), "", " ")
	if err != nil {
		return nil, err
	}
	made.text = string(text)
	return made, json.Unmarshal(text, made)
}

// has fails the test unless some resource of the type has these properties.
func (tpl *template) has(t *testing.T, resourceType string, properties map[string]any) {
	t.Helper()
	jsiiLock.Lock()
	defer jsiiLock.Unlock()
	defer func() {
		t.Helper()
		if missing := recover(); missing != nil { // how CDK's matchers fail
			t.Errorf("%v", missing)
		}
	}()
	tpl.matcher.HasResourceProperties(jsii.String(resourceType), properties)
}

// of gives the resources of a type by logical id.
func (tpl *template) of(resourceType string) map[string]resource {
	out := map[string]resource{}
	for id, r := range tpl.Resources {
		if r.Type == resourceType {
			out[id] = r
		}
	}
	return out
}

// named gives the one resource of a type whose property has the value.
func (tpl *template) named(t *testing.T, resourceType, property, value string) (string, resource) {
	t.Helper()
	for id, r := range tpl.of(resourceType) {
		if r.Properties[property] == value {
			return id, r
		}
	}
	t.Fatalf("there is no %s with %s %q", resourceType, property, value)
	return "", resource{}
}

// render writes a value with CloudFormation's functions resolved by name, such as
// "arn:aws:s3:::<Bucket>/*".
func render(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		if ref, ok := v["Ref"].(string); ok {
			return "<" + ref + ">"
		}
		if att, ok := v["Fn::GetAtt"].([]any); ok {
			return "<" + render(att[0]) + "." + render(att[1]) + ">"
		}
		if join, ok := v["Fn::Join"].([]any); ok {
			parts, _ := join[1].([]any)
			words := make([]string, len(parts))
			for i, p := range parts {
				words[i] = render(p)
			}
			return strings.Join(words, render(join[0]))
		}
	}
	return fmt.Sprint(v)
}

// texts is a property that may be one value or a list of them.
func texts(v any) []string {
	items, ok := v.([]any)
	if !ok {
		items = []any{v}
	}
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = render(item)
	}
	return out
}
