package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tablebolt "laneway/shared/table/bolt"
	"laneway/shared/token"
)

// Tokens can be made while a gateway has the data directory open: it is asked to.
func TestTokensOfARunningGateway(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.app.openTokens = openTokens
	dir := filepath.Join(w.home, "data")
	store, err := tablebolt.Open(tablebolt.Config{Path: filepath.Join(dir, "tables.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	book := &token.Store{Table: store}

	w.runs(1, "token", "list", "--data", dir)
	contains(t, "stderr", w.err.String(), "in use")

	stop, err := serveControl(t.Context(), dir, book)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, controlFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	w.runs(0, "token", "add", "phone", "--data", dir)
	secret := strings.TrimSpace(w.out.String())
	if g, err := book.Check(t.Context(), secret); err != nil || g.Name != "phone" {
		t.Errorf("the gateway does not know it: %+v, %v", g, err)
	}
	grants, err := book.List(t.Context())
	if err != nil || len(grants) != 1 {
		t.Fatalf("%v, %v", grants, err)
	}
	w.runs(0, "token", "list", "--data", dir)
	contains(t, "stdout", w.out.String(), grants[0].ID)
	w.runs(1, "token", "add", "x", "--tenant", "No Tenant", "--data", dir)
	contains(t, "stderr", w.err.String(), "tenant must match")
	w.runs(0, "token", "rm", grants[0].ID, "--data", dir)
	w.runs(1, "token", "rm", grants[0].ID, "--data", dir)
	contains(t, "stderr", w.err.String(), "there is no token")

	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, controlFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}

func TestControlNeedsItsSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stop, err := serveControl(t.Context(), dir, &token.Store{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	remote, err := findControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range []string{"", "Bearer ", "Bearer wrong", remote.Secret} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+remote.Address+"/tokens", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", header)
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("%q: %s", header, res.Status)
		}
	}
}
