package lineartest_test

import (
	"testing"

	"laneway/shared/table"
	"laneway/shared/table/lineartest"
	"laneway/shared/table/tabletest"
	"laneway/test/backends"
)

// TestLinearizable_EachBackend: histories with lost answers have an order, on a file
// and on the endpoint, and the checker refuses stores that are wrong.
func TestLinearizable_EachBackend(t *testing.T) {
	t.Parallel()
	backends.Each(t, func(t *testing.T, s table.Store) { lineartest.Check(t, s) })
}

// TestLinearizable_TheReference: what the other tests compare with is no exception.
func TestLinearizable_TheReference(t *testing.T) {
	t.Parallel()
	lineartest.Check(t, tabletest.NewModel())
}
