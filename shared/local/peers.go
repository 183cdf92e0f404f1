package local

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"laneway/shared/clock"
	"laneway/shared/meter"
	"laneway/shared/push"
	pushlocal "laneway/shared/push/local"
)

// peerPath is where a process takes posts to its connections from others.
const peerPath = "/@connections/"

// Headers of a post. The signature is over method, id, time and body, with a key
// made of the gateway token, which itself does not travel.
const (
	headerAt        = "Laneway-At"
	headerSignature = "Laneway-Signature"
)

// peerSkew is how far the clocks of two processes may be apart.
const peerSkew = 5 * time.Minute

// peers posts to connections of all processes over the same stores: to those of this
// one directly, to others by HTTP under the address in the connection's record. It
// is also the other side of that.
type peers struct {
	self  string // this process's address, without a slash at its end
	conns *pushlocal.Registry
	key   []byte
	clock clock.Clock
	http  *http.Client
	// timeout bounds a post to another process.
	timeout time.Duration
}

var _ push.Poster = (*peers)(nil)

func newPeers(conns *pushlocal.Registry, self, token string, c clock.Clock) *peers {
	key := sha256.Sum256([]byte("laneway-peer\x00" + token))
	return &peers{
		self: strings.TrimSuffix(self, "/"), conns: conns, key: key[:], clock: c, timeout: push.PostTimeout,
		http: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// close ends the idle connections to other processes.
func (p *peers) close() { p.http.CloseIdleConnections() }

// Post implements push.Poster.
func (p *peers) Post(ctx context.Context, to push.Target, message []byte) error {
	if p.mine(to) {
		return p.conns.Post(ctx, to, message)
	}
	m := meter.From(ctx)
	m.Add(meter.PostCalls, 1)
	m.Add(meter.PostUnits, push.Units(len(message)))
	return p.send(ctx, http.MethodPost, to, message)
}

// Close implements push.Poster.
func (p *peers) Close(ctx context.Context, to push.Target) error {
	if p.mine(to) {
		return p.conns.Close(ctx, to)
	}
	if err := p.send(ctx, http.MethodDelete, to, nil); !errors.Is(err, push.ErrGone) {
		return err
	}
	return nil
}

func (p *peers) mine(to push.Target) bool { return to.Callback == "" || to.Callback == p.self }

func (p *peers) send(ctx context.Context, method string, to push.Target, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, to.Callback+peerPath+url.PathEscape(to.ConnectionID), bytes.NewReader(message))
	if err != nil {
		return fmt.Errorf("%w: address of a connection: %w", push.ErrFailed, err)
	}
	at := strconv.FormatInt(p.clock.Now().UnixMilli(), 10)
	req.Header.Set(headerAt, at)
	req.Header.Set(headerSignature, hex.EncodeToString(p.sign(method, to.ConnectionID, at, message)))
	res, err := p.http.Do(req)
	if err != nil {
		return fmt.Errorf("%w: %w", push.ErrFailed, err)
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 4<<10)) // so that the connection is used again
	switch res.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusGone:
		return push.ErrGone
	case http.StatusRequestEntityTooLarge:
		return push.ErrTooLarge
	}
	return fmt.Errorf("%w: a process answered %d", push.ErrFailed, res.StatusCode)
}

func (p *peers) sign(method, connectionID, at string, message []byte) []byte {
	h := hmac.New(sha256.New, p.key)
	for _, part := range []string{method, connectionID, at} {
		_, _ = io.WriteString(h, part+"\x00") // writing to a hash never fails
	}
	_, _ = h.Write(message)
	return h.Sum(nil)
}

// ServeHTTP takes a post of another process.
func (p *peers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to := push.Target{ConnectionID: strings.TrimPrefix(r.URL.Path, peerPath)}
	message, err := io.ReadAll(http.MaxBytesReader(w, r.Body, pushlocal.DefaultLimit))
	if err != nil {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	if !p.signed(r, to.ConnectionID, message) {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	switch r.Method {
	case http.MethodPost:
		err = p.conns.Post(r.Context(), to, message)
	case http.MethodDelete:
		err = p.conns.Close(r.Context(), to)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	switch {
	case err == nil:
	case errors.Is(err, push.ErrGone):
		w.WriteHeader(http.StatusGone)
	case errors.Is(err, push.ErrTooLarge):
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	default:
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (p *peers) signed(r *http.Request, connectionID string, message []byte) bool {
	at := r.Header.Get(headerAt)
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil || p.clock.Now().Sub(time.UnixMilli(ms)).Abs() > peerSkew {
		return false
	}
	got, err := hex.DecodeString(r.Header.Get(headerSignature))
	return err == nil && hmac.Equal(got, p.sign(r.Method, connectionID, at, message))
}
