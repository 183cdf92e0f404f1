package local

import (
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

	"laneway/shared/blob"
	"laneway/shared/clock"
	"laneway/shared/upload"
)

// uploadPath is where uploads are put on one machine.
const uploadPath = "/uploads/"

// uploads is the door for uploads on one machine: it signs addresses with a secret
// made of the gateway's token, so that every process of a gateway takes what one of
// them has signed.
type uploads struct {
	secret [sha256.Size]byte
	base   func() string // http address of this server
	blobs  blob.Store
	clock  clock.Clock
}

func newUploads(token string, base func() string, blobs blob.Store, c clock.Clock) *uploads {
	return &uploads{secret: sha256.Sum256([]byte("laneway-uploads\x00" + token)), base: base, blobs: blobs, clock: c}
}

// Sign implements upload.Signer.
func (d *uploads) Sign(_ context.Context, u upload.Upload, until time.Time) (upload.Place, error) {
	q := url.Values{
		"size": {strconv.FormatInt(u.Size, 10)}, "sha256": {u.SHA256}, "until": {strconv.FormatInt(until.UnixMilli(), 10)},
	}
	q.Set("sig", d.mac(u.Key, q))
	address := d.base() + uploadPath + strings.TrimPrefix(u.Key, "uploads/") + "?" + q.Encode()
	return upload.Place{URL: address, Method: http.MethodPut, Headers: map[string]string{}}, nil
}

func (d *uploads) mac(key string, q url.Values) string {
	m := hmac.New(sha256.New, d.secret[:])
	fmt.Fprintf(m, "%s\n%s\n%s\n%s", key, q.Get("size"), q.Get("sha256"), q.Get("until"))
	return hex.EncodeToString(m.Sum(nil))
}

// ServeHTTP takes an upload: the agreed length and digest, once.
func (d *uploads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut {
		w.Header().Set("Allow", http.MethodPut)
		http.Error(w, "uploads are put", http.StatusMethodNotAllowed)
		return
	}
	key, q := "uploads/"+strings.TrimPrefix(r.URL.Path, uploadPath), r.URL.Query()
	until, _ := strconv.ParseInt(q.Get("until"), 10, 64)
	size, _ := strconv.ParseInt(q.Get("size"), 10, 64)
	if !hmac.Equal([]byte(d.mac(key, q)), []byte(q.Get("sig"))) || d.clock.Now().UnixMilli() >= until {
		http.Error(w, "the address is not good, or no longer", http.StatusForbidden)
		return
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, size+1))
	if err != nil {
		http.Error(w, "the upload broke off", http.StatusBadRequest)
		return
	}
	if sum := sha256.Sum256(data); int64(len(data)) != size || hex.EncodeToString(sum[:]) != q.Get("sha256") {
		http.Error(w, "the bytes are not the ones that were announced", http.StatusBadRequest)
		return
	}
	err = d.blobs.PutNew(r.Context(), key, data)
	switch {
	case errors.Is(err, blob.ErrExists):
		http.Error(w, "it has been put already", http.StatusPreconditionFailed)
	case err != nil:
		http.Error(w, "not stored", http.StatusInternalServerError)
	default:
		w.WriteHeader(http.StatusOK)
	}
}
