package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// folder is the architecture in the words of Go, which name the built files.
func (a Architecture) folder() string {
	if a == X8664 {
		return "amd64"
	}
	return "arm64"
}

// asset is the built zip of a function.
func (c *Config) asset(function string) string {
	return filepath.Join(c.Assets, c.Architecture.folder(), function+".zip")
}

// checkAssets says in plain words what is missing, before CDK says it otherwise.
func checkAssets(c *Config) error {
	for _, name := range Functions() {
		if _, err := os.Stat(c.asset(name)); err != nil {
			return fmt.Errorf("the %s function is not built: no %s; run scripts/build.sh functions %s", name, c.asset(name), c.Architecture.folder())
		}
	}
	return nil
}
