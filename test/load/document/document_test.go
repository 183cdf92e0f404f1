package document_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"laneway/test/load/document"
)

func TestReplace_TouchesItsBlockAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "page.md")
	const page = "# Page\n<!-- begin one -->\nold\n<!-- end one -->\nbetween\n<!-- begin two -->\nkept\n<!-- end two -->\nlast\n"
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second time changes nothing more
		if err := document.Replace(path, "one", "new\n"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "# Page\n<!-- begin one -->\n\nnew\n\n<!-- end one -->\nbetween\n<!-- begin two -->\nkept\n<!-- end two -->\nlast\n"
	if string(got) != want {
		t.Errorf("got %q", got)
	}
}

func TestReplace_WithoutMarksThePageStays(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"nothing\n", "<!-- begin one -->\nno end\n", "<!-- end one -->\n<!-- begin one -->\n"} {
		path := filepath.Join(t.TempDir(), "page.md")
		if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		err := document.Replace(path, "one", "new")
		got, _ := os.ReadFile(path)
		if err == nil || !strings.Contains(err.Error(), "one") || string(got) != page {
			t.Errorf("%q: %v, %q", page, err, got)
		}
	}
}
