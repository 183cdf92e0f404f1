package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// checkAssets says in plain words what is missing, before CDK says it otherwise.
func checkAssets(c Config) error {
	for _, name := range Functions() {
		zip := filepath.Join(c.Assets, string(c.Architecture), name+".zip")
		if _, err := os.Stat(zip); err != nil {
			return fmt.Errorf("the %s function is not built: no %s; run scripts/build.sh %s", name, zip, c.Architecture)
		}
	}
	return nil
}
