package table_test

import (
	"testing"

	"laneway/shared/table"
	"laneway/shared/table/tabletest"
)

// The reference itself must pass the fixed cases that others are judged by.
func TestReferencePassesTheSuite(t *testing.T) {
	t.Parallel()
	tabletest.Run(t, func(*testing.T) table.Store { return tabletest.NewModel() })
}
