package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"laneway/shared/model/catalog"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/dynamo"
)

// modelsCommands look after the configuration of models.
type modelsCommands struct {
	Check modelsCheck `cmd:"" help:"Check a configuration of models and say what is wrong with it."`
	Store modelsStore `cmd:"" help:"Check a configuration of models and store it in a stack."`
	Show  modelsShow  `cmd:"" help:"Print the configuration of models that a stack has."`
	Clear modelsClear `cmd:"" help:"Take the configuration of models out of a stack."`
}

type modelsCheck struct {
	File string `arg:"" optional:"" type:"path" placeholder:"FILE" help:"Default: models.json in --data."`
	Data string `type:"path" placeholder:"DIR" help:"Data directory (default: under the user's data directory)."`
}

// Run checks a file.
func (c *modelsCheck) Run(a *app) error {
	path := c.File
	if path == "" {
		dir, err := a.dataDir(c.Data)
		if err != nil {
			return err
		}
		path = filepath.Join(dir, modelsFile)
	}
	cat, err := parseModels(path)
	if err != nil {
		return err
	}
	n := 0
	for i := range cat.Providers {
		n += len(cat.Providers[i].Models)
	}
	fmt.Fprintf(a.stdout, "%s is fine: %d providers, %d models\n", path, len(cat.Providers), n)
	return nil
}

func parseModels(path string) (*catalog.Catalog, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("configuration of models: %w", err)
	}
	cat, err := catalog.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s:\n%w", path, err)
	}
	return cat, nil
}

type modelsStore struct {
	File  string `arg:"" type:"existingfile" placeholder:"FILE" help:"The configuration."`
	Stack string `default:"laneway" placeholder:"NAME" help:"Whose tables (${default})."`
}

// Run stores a file.
func (c *modelsStore) Run(ctx context.Context, a *app) error {
	raw, err := os.ReadFile(c.File)
	if err != nil {
		return fmt.Errorf("configuration of models: %w", err)
	}
	if _, err := catalog.Parse(raw); err != nil {
		return fmt.Errorf("%s:\n%w", c.File, err) // before anything is looked for
	}
	store, err := stackTables(ctx, c.Stack)
	if err != nil {
		return err
	}
	if err := catalog.Save(ctx, store, session.DefaultTenant, raw); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "stored in %s; functions that run already read it when they start the next time\n", c.Stack)
	return nil
}

type modelsShow struct {
	Stack string `default:"laneway" placeholder:"NAME" help:"Whose tables (${default})."`
}

// Run prints what is stored.
func (c *modelsShow) Run(ctx context.Context, a *app) error {
	store, err := stackTables(ctx, c.Stack)
	if err != nil {
		return err
	}
	raw, err := catalog.Stored(ctx, store, session.DefaultTenant)
	if err != nil {
		return err
	}
	if raw == nil {
		return fmt.Errorf("%s has no configuration of models", c.Stack)
	}
	_, err = fmt.Fprintln(a.stdout, strings.TrimSpace(string(raw)))
	return err
}

type modelsClear struct {
	Stack string `default:"laneway" placeholder:"NAME" help:"Whose tables (${default})."`
}

// Run removes what is stored.
func (c *modelsClear) Run(ctx context.Context) error {
	store, err := stackTables(ctx, c.Stack)
	if err != nil {
		return err
	}
	return catalog.Remove(ctx, store, session.DefaultTenant)
}

// stackTables are the tables of a stack, with an operator's own credentials.
func stackTables(ctx context.Context, stack string) (table.Store, error) {
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	if c.Region == "" {
		return nil, errors.New("a stack needs AWS_REGION, or a region in the profile")
	}
	return dynamo.New(dynamodb.NewFromConfig(c), dynamo.Config{Prefix: stack + "-"}), nil
}
