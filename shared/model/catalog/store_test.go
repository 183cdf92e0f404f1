package catalog_test

import (
	"errors"
	"testing"

	"laneway/shared/model/catalog"
	"laneway/shared/table"
	"laneway/test/backends"
)

func TestStore_IsCheckedAndComesBackAsItWas(t *testing.T) {
	t.Parallel()
	backends.Each(t, func(t *testing.T, store table.Store) {
		if c, err := catalog.Load(t.Context(), store, "t"); c != nil || err != nil {
			t.Fatalf("nothing is stored: %v, %v", c, err)
		}
		if err := catalog.Save(t.Context(), store, "t", []byte(`{"providers": 1}`)); !errors.Is(err, catalog.ErrInvalid) {
			t.Errorf("a wrong one: %v", err)
		}
		if err := catalog.Save(t.Context(), store, "t", []byte(whole)); err != nil {
			t.Fatal(err)
		}
		raw, err := catalog.Stored(t.Context(), store, "t")
		if err != nil || string(raw) != whole {
			t.Errorf("%s, %v", raw, err)
		}
		if c, err := catalog.Load(t.Context(), store, "t"); err != nil || len(c.Providers) != 3 {
			t.Errorf("%v, %v", c, err)
		}
		if c, _ := catalog.Load(t.Context(), store, "other"); c != nil {
			t.Error("another tenant has it")
		}
		if err := catalog.Remove(t.Context(), store, "t"); err != nil {
			t.Fatal(err)
		}
		if c, _ := catalog.Load(t.Context(), store, "t"); c != nil {
			t.Error("it is still there")
		}
	})
}
