package main

import (
	"context"
	"errors"
)

// openLocal opens the single-machine edition.
func openLocal(context.Context, localConfig) (localServer, error) {
	return nil, errors.New("this build has no single-machine edition")
}
