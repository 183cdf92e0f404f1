// Package builtin holds the tools that come with the product: read, ls and
// session_status, which change nothing, and write and exec, which are registered
// only where an operator allows them.
//
// Guarantees: a tool touches no file outside the workspace of its call's scope
// (exec is a process of the host and is bound by the host, see Exec); outputs are
// bounded before they are built, whatever the size of a file or directory; an
// ended context stops a tool at once; error texts name paths as the model wrote
// them.
package builtin

import (
	"encoding/json"
	"errors"
	"fmt"

	"laneway/shared/tool"
	"laneway/shared/workspace"
)

var errNoWorkspace = errors.New("this run has no workspace")

// inWorkspace decodes the arguments of a call and runs work in its workspace,
// which is open only as long as the call.
func inWorkspace[A any](call tool.Call, work func(args A, dir *workspace.Dir) (tool.Result, error)) (tool.Result, error) {
	args, err := decode[A](call)
	if err != nil {
		return tool.Result{}, err
	}
	if call.Scope.Workspace == "" {
		return tool.Result{}, errNoWorkspace
	}
	dir, err := workspace.Open(call.Scope.Workspace)
	if err != nil {
		return tool.Result{}, errors.New("the workspace cannot be opened") // its host path is not the model's business
	}
	defer dir.Close()
	return work(args, dir)
}

func decode[A any](call tool.Call) (A, error) {
	var args A
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		return args, fmt.Errorf("arguments of %s: %w", call.Name, err)
	}
	return args, nil
}
