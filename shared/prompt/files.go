package prompt

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"laneway/shared/workspace"
)

// Kind is the kind of session that a run belongs to: it decides which files of
// the workspace the agent is given unasked.
type Kind string

// The kinds. The empty Kind is Main.
const (
	Main     Kind = "main"     // the user's own session: everything
	Group    Kind = "group"    // others read along: no memory
	Cron     Kind = "cron"     // a scheduled run: no memory
	Subagent Kind = "subagent" // AGENTS.md only
)

// readCap bounds what is read of one file. A file beyond it is shortened as one of
// this size; its end is then not its real end.
const readCap = 2 << 20

// bootstrap is the order in which files are given, and for whom.
var bootstrap = []struct {
	name string
	// expected files are reported to the agent when they are missing.
	expected bool
	kinds    []Kind
}{
	{"AGENTS.md", true, []Kind{Main, Group, Cron, Subagent}},
	{"SOUL.md", true, []Kind{Main, Group, Cron}},
	{"IDENTITY.md", true, []Kind{Main, Group, Cron}},
	{"USER.md", false, []Kind{Main, Group, Cron}},
	{"TOOLS.md", false, []Kind{Main, Group}},     // of older workspaces
	{"HEARTBEAT.md", false, []Kind{Main, Group}}, // of older workspaces
	{"BOOTSTRAP.md", false, []Kind{Main}},
	{"MEMORY.md", false, []Kind{Main}},
}

// File is a bootstrap file. Path is how the agent names it.
type File struct {
	Name, Path string
	Content    string
	Missing    bool
}

// Load reads the bootstrap files of a workspace for a kind of session. A file that
// is missing, or that is no regular file inside the workspace, is given as Missing
// if it is expected, else not at all. Only a failure to read an existing file is
// an error.
func Load(dir *workspace.Dir, kind Kind) ([]File, error) {
	if kind == "" {
		kind = Main
	}
	var files []File
	for _, b := range bootstrap {
		if !slices.Contains(b.kinds, kind) {
			continue
		}
		content, found, err := load(dir, b.name)
		if err != nil {
			return nil, fmt.Errorf("bootstrap file %s: %w", b.name, err)
		}
		if found || b.expected {
			files = append(files, File{Name: b.name, Path: filepath.Join(dir.Path(), b.name), Content: content, Missing: !found})
		}
	}
	return files, nil
}

func load(dir *workspace.Dir, name string) (content string, found bool, err error) {
	f, err := dir.Open(name)
	if err != nil {
		return "", false, nil // whatever keeps it from being opened: it is not there for the agent
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	raw, err := io.ReadAll(io.LimitReader(f, readCap))
	if err != nil {
		return "", false, err
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD"), true, nil
}

// rank is the place of a file in the prompt; files that are not known come last.
func rank(name string) int {
	for i, b := range bootstrap {
		if b.name == name {
			return i
		}
	}
	return len(bootstrap)
}
