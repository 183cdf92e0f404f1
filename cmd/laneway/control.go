package main

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"laneway/shared/token"
)

// The data directory belongs to the running gateway, so commands that change what is
// in it ask the gateway to do so. How they reach it is in a file that only the owner of
// the directory can read: who can read that could open the directory as well.
//
// control is that file.
type control struct {
	Address string `json:"address"` // of this machine's loopback interface
	Secret  string `json:"secret"`
}

const controlFile = "control.json"

// controlTimeout bounds a request in both directions.
const controlTimeout = 10 * time.Second

// serveControl answers commands about the tokens until stop is called, which also
// takes the file away.
func serveControl(ctx context.Context, dir string, book tokenBook) (stop func() error, err error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := control{Address: ln.Addr().String(), Secret: token.New()}
	path := filepath.Join(dir, controlFile)
	if err := c.write(path); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	srv := &http.Server{Handler: c.handler(book), ReadHeaderTimeout: controlTimeout, ReadTimeout: controlTimeout, WriteTimeout: controlTimeout}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Serve(ln) // ends with Close
	}()
	return func() error {
		err := errors.Join(os.Remove(path), srv.Close())
		<-ended
		return err
	}, nil
}

// write puts the file there. A predecessor that was killed has left its own, which
// is removed first: its mode would stay.
func (c control) write(path string) error {
	b, err := json.Marshal(c) //nolint:gosec // the secret is what the file is for
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

// handler serves the book to who knows the secret.
func (c control) handler(book tokenBook) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /tokens", func(w http.ResponseWriter, r *http.Request) {
		var row tokenRow
		if err := json.NewDecoder(io.LimitReader(r.Body, 64<<10)).Decode(&row); err != nil {
			controlReply(w, nil, err)
			return
		}
		secret, err := book.Add(r.Context(), row.grant())
		controlReply(w, secret, err)
	})
	mux.HandleFunc("GET /tokens", func(w http.ResponseWriter, r *http.Request) {
		grants, err := book.List(r.Context())
		controlReply(w, rowsOf(grants), err)
	})
	mux.HandleFunc("DELETE /tokens/{id}", func(w http.ResponseWriter, r *http.Request) {
		controlReply(w, nil, book.Remove(r.Context(), r.PathValue("id")))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !bearer || subtle.ConstantTimeCompare([]byte(given), []byte(c.Secret)) != 1 {
			http.Error(w, "forbidden", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// controlAnswer is the answer to a request: a value, or why there is none.
type controlAnswer struct {
	Value   json.RawMessage `json:"value,omitempty"`
	Error   string          `json:"error,omitempty"`
	Unknown bool            `json:"unknown,omitempty"` // the error is token.ErrUnknown
}

func controlReply(w http.ResponseWriter, v any, err error) {
	var a controlAnswer
	if err == nil {
		a.Value, err = json.Marshal(v)
	}
	if err != nil {
		a = controlAnswer{Error: err.Error(), Unknown: errors.Is(err, token.ErrUnknown)}
	}
	w.Header().Set("Content-Type", "application/json")
	b, err := json.Marshal(a)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(b) // who asked may be gone
}

// remoteTokens is the book of a running gateway.
type remoteTokens struct{ control }

// findControl reads how the gateway that has a directory open is reached.
func findControl(dir string) (remoteTokens, error) {
	b, err := os.ReadFile(filepath.Join(dir, controlFile))
	if err != nil {
		return remoteTokens{}, err
	}
	var c control
	err = json.Unmarshal(b, &c)
	return remoteTokens{c}, err
}

func (r remoteTokens) ask(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+r.Address+path, &body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.Secret)
	// No proxy, whatever the environment says: this must not leave the machine.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("the running gateway cannot be reached: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the running gateway answered %s", res.Status)
	}
	var a controlAnswer
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		return err
	}
	switch {
	case a.Unknown:
		return token.ErrUnknown
	case a.Error != "":
		return errors.New(a.Error)
	case out == nil:
		return nil
	}
	return json.Unmarshal(a.Value, out)
}

func (r remoteTokens) Add(ctx context.Context, g token.Grant) (secret string, err error) {
	err = r.ask(ctx, http.MethodPost, "/tokens", rowOf(g), &secret)
	return secret, err
}

func (r remoteTokens) List(ctx context.Context) ([]token.Grant, error) {
	var rows []tokenRow
	if err := r.ask(ctx, http.MethodGet, "/tokens", nil, &rows); err != nil {
		return nil, err
	}
	var grants []token.Grant
	for _, row := range rows {
		grants = append(grants, row.grant())
	}
	return grants, nil
}

func (r remoteTokens) Remove(ctx context.Context, id string) error {
	return r.ask(ctx, http.MethodDelete, "/tokens/"+id, nil, nil)
}
