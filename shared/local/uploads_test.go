package local

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"laneway/shared/blob/dir"
	"laneway/shared/clock"
	"laneway/shared/upload"
)

// past is a clock that stands an hour ago: what it signs is over.
type past struct{ clock.System }

func (past) Now() time.Time { return time.Now().Add(-time.Hour) }

func TestUploads_TakesTheAgreedBytesOnce(t *testing.T) {
	t.Parallel()
	blobs, err := dir.Open(dir.Config{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blobs.Close() })
	var base string
	door := newUploads("token", func() string { return base }, blobs, clock.System{})
	srv := httptest.NewServer(door)
	t.Cleanup(srv.Close)
	base = srv.URL
	data := []byte("the bytes")
	sum := sha256.Sum256(data)
	u := upload.Upload{ID: "id", Key: "uploads/default/id", Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
	place, err := door.Sign(context.Background(), u, time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	over, err := door.Sign(context.Background(), u, past{}.Now())
	if err != nil {
		t.Fatal(err)
	}
	send := func(method, url string, body []byte) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	for _, step := range []struct {
		what, method, url string
		body              []byte
		want              int
	}{
		{"another method", http.MethodPost, place.URL, data, http.StatusMethodNotAllowed},
		{"another key", http.MethodPut, strings.Replace(place.URL, "/id?", "/other?", 1), data, http.StatusForbidden},
		{"another length", http.MethodPut, strings.Replace(place.URL, "size=9", "size=10", 1), data, http.StatusForbidden},
		{"an address that is over", http.MethodPut, over.URL, data, http.StatusForbidden},
		{"other bytes", http.MethodPut, place.URL, []byte("her bytes"), http.StatusBadRequest},
		{"more bytes", http.MethodPut, place.URL, append(data, 'x'), http.StatusBadRequest},
		{"the bytes", http.MethodPut, place.URL, data, http.StatusOK},
		{"the bytes again", http.MethodPut, place.URL, data, http.StatusPreconditionFailed},
	} {
		if got := send(step.method, step.url, step.body); got != step.want {
			t.Errorf("%s: %d, want %d", step.what, got, step.want)
		}
	}
	if got, err := blobs.Get(t.Context(), u.Key); err != nil || !bytes.Equal(got, data) {
		t.Errorf("stored: %q %v", got, err)
	}
}
