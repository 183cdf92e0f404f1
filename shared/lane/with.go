package lane

import (
	"context"
	"slices"

	"laneway/shared/table"
)

// with is ops and the call's own, unless there was an error already.
func (c *Call) with(ctx context.Context, ops []table.Op, err error) ([]table.Op, error) {
	if err != nil || c.With == nil {
		return ops, err
	}
	more, err := c.With(ctx)
	return append(slices.Clip(ops), more...), err
}
