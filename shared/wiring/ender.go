package wiring

import (
	"context"
	"errors"

	"laneway/shared/loop"
	"laneway/shared/model"
	"laneway/shared/rpc"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/tool"
)

// ender makes what a gateway ends runs with whose holder is dead: a runner that has
// neither models nor tools and is asked for nothing that needs them.
func (c *Core) ender() (rpc.Ender, error) {
	return c.Runner(RunnerConfig{Models: nobody{}, Agents: nobody{}})
}

// nobody has no models and no tools.
type nobody struct{}

var errNobody = errors.New("wiring: a gateway runs no turn")

func (nobody) Select(context.Context, run.Input, session.Entry) (model.Selected, error) {
	return model.Selected{}, errNobody
}

func (nobody) Prompt(context.Context, loop.PromptInput) (string, error) { return "", errNobody }

func (nobody) Tools(context.Context, *tool.Scope) (*tool.Registry, error) { return nil, errNobody }
