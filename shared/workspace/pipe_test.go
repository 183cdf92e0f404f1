//go:build unix

package workspace_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"laneway/shared/workspace"
)

// A pipe that nobody writes to would hold its reader for ever.
func TestAPipeIsNotOpened(t *testing.T) {
	t.Parallel()
	d, dir, _ := setup(t)
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	if _, err := d.Open("pipe"); !errors.Is(err, workspace.ErrNotRegular) {
		t.Errorf("open: %v", err)
	}
	if _, err := d.Write("pipe", nil); !errors.Is(err, workspace.ErrNotRegular) {
		t.Errorf("write: %v", err)
	}
}
