package catalog

import (
	"context"
	"errors"
	"fmt"

	"laneway/shared/table"
)

// name is where a tenant's configuration of models is in the config table.
const name = "MODELS"

const attrBody = "body"

func key(tenant string) table.Key {
	return table.Key{Table: table.Config, PK: tenant + "#CONFIG", SK: name}
}

// Load reads the configuration that is stored in the config table; nil where none is.
func Load(ctx context.Context, t table.Store, tenant string) (*Catalog, error) {
	raw, err := Stored(ctx, t, tenant)
	if err != nil || raw == nil {
		return nil, err
	}
	c, err := Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("the stored configuration of models: %w", err)
	}
	return c, nil
}

// Stored is the configuration as it was written; nil where none is.
func Stored(ctx context.Context, t table.Store, tenant string) ([]byte, error) {
	it, err := t.Get(ctx, key(tenant))
	if errors.Is(err, table.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration of models: %w", err)
	}
	return it.Attrs.Bytes(attrBody), nil
}

// Save checks a configuration and stores it, as it was written, in the place of the one
// before.
func Save(ctx context.Context, t table.Store, tenant string, raw []byte) error {
	if _, err := Parse(raw); err != nil {
		return err
	}
	_, err := t.Write(ctx, table.Op{Kind: table.Put, Key: key(tenant), Item: table.Attrs{attrBody: raw}})
	if err != nil {
		return fmt.Errorf("store the configuration of models: %w", err)
	}
	return nil
}

// Remove takes the stored configuration away.
func Remove(ctx context.Context, t table.Store, tenant string) error {
	if _, err := t.Write(ctx, table.Op{Kind: table.Delete, Key: key(tenant)}); err != nil {
		return fmt.Errorf("remove the configuration of models: %w", err)
	}
	return nil
}
