package run

import (
	"laneway/shared/model"
	"laneway/shared/protocol"
)

// WireUsage is a usage as clients see it; nil where nothing was used.
func WireUsage(u *model.Usage) *protocol.Usage {
	if u == nil || *u == (model.Usage{}) {
		return nil
	}
	return usage(u)
}
