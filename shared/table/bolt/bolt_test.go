package bolt_test

import (
	"path/filepath"
	"testing"

	"laneway/shared/table"
	"laneway/shared/table/bolt"
	"laneway/shared/table/tabletest"
)

func open(t *testing.T, c bolt.Config) *bolt.Store {
	t.Helper()
	if c.Path == "" {
		c.Path = filepath.Join(t.TempDir(), "tables.db")
	}
	s, err := bolt.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestSuite(t *testing.T) {
	t.Parallel()
	tabletest.Run(t, func(t *testing.T) table.Store {
		t.Helper()
		return open(t, bolt.Config{NoSync: true})
	})
}
