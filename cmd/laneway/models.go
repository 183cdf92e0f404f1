package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"laneway/shared/model/adapters"
	"laneway/shared/model/catalog"
	"laneway/shared/model/choose"
	"laneway/shared/model/route"
	"laneway/shared/session"
	"laneway/shared/table"
)

// Names in the data directory.
const (
	modelsFile = "models.json"
	secretsDir = "secrets" // a file a secret
)

// modelWithin bounds what choosing a model may take: a server may be asked which
// models it has.
const modelWithin = 20 * time.Second

// modelRoutes reads the configuration of models: the file that was named, else
// models.json in the data directory, else what is stored in the config table. What can
// be said at once is said before anything is opened.
func modelRoutes(c localConfig) (func(context.Context, table.Store) (*route.Set, error), error) {
	file, err := readModels(c)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, store table.Store) (*route.Set, error) {
		ctx, cancel := context.WithTimeout(ctx, modelWithin)
		defer cancel()
		configured := file
		if configured == nil {
			if configured, err = catalog.Load(ctx, store, session.DefaultTenant); err != nil {
				return nil, err
			}
		}
		return route.Open(ctx, route.Config{
			Catalog: configured, Env: modelChoice(c.Env), Fallbacks: route.SplitList(c.Env("LANEWAY_FALLBACKS")),
			Make: adapters.Make(nil), Makers: adapters.Makers(nil), Secret: secrets(c),
		})
	}, nil
}

// readModels reads the file; nil where there is none and none was named.
func readModels(c localConfig) (*catalog.Catalog, error) {
	path := c.Models
	if path == "" {
		path = filepath.Join(c.Data, modelsFile)
	}
	cat, err := parseModels(path)
	if errors.Is(err, fs.ErrNotExist) && c.Models == "" {
		return nil, nil //nolint:nilnil // no file is no error
	}
	return cat, err
}

// secrets looks keys up in the environment, and in files of the data directory.
func secrets(c localConfig) func(catalog.Key) string {
	return func(k catalog.Key) string {
		if k.Source == catalog.FromEnv {
			return strings.TrimSpace(c.Env(k.Name))
		}
		b, err := os.ReadFile(filepath.Join(c.Data, secretsDir, filepath.Base(k.Name)))
		if err != nil {
			return "" // it is told where the key is needed
		}
		return strings.TrimSpace(string(b))
	}
}

// modelChoice reads the variables that choose a model.
func modelChoice(env func(string) string) choose.Config {
	return choose.Config{
		Selector:     strings.TrimSpace(env("LANEWAY_MODEL")),
		AnthropicKey: env("ANTHROPIC_API_KEY"), AnthropicURL: env("ANTHROPIC_BASE_URL"),
		OpenAIKey: env("OPENAI_API_KEY"), OpenAIBaseURL: env("OPENAI_BASE_URL"),
		AWS: env("AWS_PROFILE") != "" || env("AWS_ACCESS_KEY_ID") != "" || env("AWS_WEB_IDENTITY_TOKEN_FILE") != "" ||
			env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != "" || env("AWS_CONTAINER_CREDENTIALS_FULL_URI") != "",
	}
}
