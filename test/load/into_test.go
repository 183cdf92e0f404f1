package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestATableTakesThePlaceOfTheLastOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("# Page\n"+tableBegins+"old\n"+tableEnds+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time nothing changes
		if err := into(path, "| new |\n"); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if want := "# Page\n" + tableBegins + "\n| new |\n\n" + tableEnds + "after\n"; err != nil || string(b) != want {
			t.Errorf("%q, %v; want %q", b, err, want)
		}
	}
	if err := os.WriteFile(path, []byte("# Page\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if into(path, "| new |") == nil {
		t.Error("a page without a place was written to")
	}
}

// The page of the repository has a place for the table.
func TestTheDocumentHasAPlace(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "performance.md")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := into(path, "| new |"); err != nil {
		t.Error(err)
	}
}
