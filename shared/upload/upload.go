// Package upload takes what is too large for a frame: a client asks for a place, puts
// the bytes there itself, and names them in its message.
//
// Guarantees: where an upload goes is chosen here, under the tenant; its length and
// SHA-256 are agreed before and checked by whoever takes it; it is written once and
// never again, so what a run reads is what was named when it was accepted, and that
// is checked by the digest; an upload of another tenant, or one that has not been
// put, does not exist.
package upload

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"laneway/shared/blob"
	"laneway/shared/clock"
	"laneway/shared/id"
	"laneway/shared/protocol"
	"laneway/shared/table"
)

// Limits.
const (
	// PutWithin is how long the address of an upload is good for.
	PutWithin = 10 * time.Minute
	// NameWithin is how long an upload can be named in a message.
	NameWithin = 24 * time.Hour
)

// ErrUnknown is an upload that does not exist, has not been put, or has expired.
var ErrUnknown = errors.New("upload: unknown, not complete, or expired")

// Place is where an upload is put: one request with these headers.
type Place struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
}

// Signer makes the address of a place: only these bytes, only once, only until then.
type Signer interface {
	Sign(ctx context.Context, u Upload, until time.Time) (Place, error)
}

// Upload is a place that was given to a client.
type Upload struct {
	ID     string
	Key    string // in the blob store
	Size   int64  // bytes
	SHA256 string // hex
	Name   string
	Mime   string
}

// Service gives places and reads what was put there.
type Service struct {
	Store  table.Store
	Blobs  blob.Store
	Signer Signer
	Clock  clock.Clock // nil: the machine's
	NewID  id.Source   // nil: UUIDs
	// MaxSize bounds an upload in bytes; 0: blob.MaxSize.
	MaxSize int64
}

// New fills the defaults of a Service.
func New(s Service) *Service {
	if s.Clock == nil {
		s.Clock = clock.System{}
	}
	if s.NewID == nil {
		s.NewID = id.UUID
	}
	s.MaxSize = cmp.Or(s.MaxSize, blob.MaxSize)
	return &s
}

// Created is the reply of uploads.create.
type Created struct {
	Place

	UploadID    string `json:"uploadId"`
	ExpiresAtMs int64  `json:"expiresAtMs"` // of the address
}

func rowKey(tenant, uploadID string) table.Key {
	return table.Key{Table: table.Config, PK: tenant + "#UPLOAD#" + uploadID, SK: "META"}
}

// Create gives a place for bytes that the client describes.
func (s *Service) Create(ctx context.Context, tenant string, p protocol.UploadsCreateParams) (Created, error) {
	if p.SizeBytes > s.MaxSize {
		return Created{}, protocol.InvalidParams("uploads.create", fmt.Sprintf("at /sizeBytes: must be <= %d", s.MaxSize))
	}
	now := s.Clock.Now()
	u := Upload{ID: s.NewID(), Size: p.SizeBytes, SHA256: p.SHA256, Name: p.FileName, Mime: p.MimeType}
	u.Key = "uploads/" + tenant + "/" + u.ID
	place, err := s.Signer.Sign(ctx, u, now.Add(PutWithin))
	if err != nil {
		return Created{}, fmt.Errorf("sign upload: %w", err)
	}
	item := table.Attrs{
		"key": u.Key, "size": u.Size, "sha": u.SHA256, "exp": now.Add(NameWithin).UnixMilli(), table.TTLAttr: now.Add(NameWithin).Unix(),
	}
	for name, v := range map[string]string{"name": u.Name, "mime": u.Mime} {
		if v != "" {
			item[name] = v
		}
	}
	if _, err := s.Store.Write(ctx, table.Op{Kind: table.Put, Key: rowKey(tenant, u.ID), Item: item, If: table.NotExists()}); err != nil {
		return Created{}, fmt.Errorf("store upload: %w", err)
	}
	return Created{UploadID: u.ID, Place: place, ExpiresAtMs: now.Add(PutWithin).UnixMilli()}, nil
}

// find reads an upload that can still be named.
func (s *Service) find(ctx context.Context, tenant, uploadID string) (Upload, error) {
	it, err := s.Store.Get(ctx, rowKey(tenant, uploadID))
	if errors.Is(err, table.ErrNotFound) {
		return Upload{}, ErrUnknown
	}
	if err != nil {
		return Upload{}, fmt.Errorf("read upload: %w", err)
	}
	a := it.Attrs
	if s.Clock.Now().UnixMilli() >= a.Int("exp") {
		return Upload{}, ErrUnknown
	}
	u := Upload{ID: uploadID, Key: a.Str("key"), Size: a.Int("size"), SHA256: a.Str("sha"), Name: a.Str("name"), Mime: a.Str("mime")}
	there, err := s.Blobs.List(ctx, u.Key, "", 1)
	if err != nil {
		return Upload{}, err
	}
	if len(there) == 0 || there[0] != u.Key {
		return Upload{}, ErrUnknown
	}
	return u, nil
}

// File is a file of a message as a run's record has it.
type File struct {
	Key    string `json:"key"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Name   string `json:"name,omitempty"`
	Mime   string `json:"mime,omitempty"`
}

// Attach turns the attachments of a message into files: uploads are looked up, what
// came inline is stored. Errors that are the caller's are *protocol.Error.
func (s *Service) Attach(ctx context.Context, tenant, method string, list []protocol.Attachment) (json.RawMessage, error) {
	if len(list) == 0 {
		return nil, nil
	}
	files := make([]File, len(list))
	for i, a := range list {
		f, err := s.attach(ctx, tenant, a)
		switch {
		case errors.Is(err, ErrUnknown):
			return nil, protocol.InvalidParams(method, fmt.Sprintf("at /attachments/%d/uploadId: %v", i, err))
		case errors.Is(err, errContent):
			return nil, protocol.InvalidParams(method, fmt.Sprintf("at /attachments/%d/content: %v", i, err))
		case err != nil:
			return nil, err
		}
		files[i] = f
	}
	return protocol.Marshal(files)
}

func (s *Service) attach(ctx context.Context, tenant string, a protocol.Attachment) (File, error) {
	if a.UploadID != "" {
		u, err := s.find(ctx, tenant, a.UploadID)
		return File{u.Key, u.Size, u.SHA256, cmp.Or(a.FileName, u.Name), cmp.Or(a.MimeType, u.Mime)}, err
	}
	data, err := inline(a.Content)
	if err != nil {
		return File{}, err
	}
	f := File{Size: int64(len(data)), SHA256: digest(data), Name: a.FileName, Mime: a.MimeType}
	f.Key = "uploads/" + tenant + "/inline-" + f.SHA256
	if err := s.Blobs.PutNew(ctx, f.Key, data); err != nil && !errors.Is(err, blob.ErrExists) {
		return File{}, fmt.Errorf("store attachment: %w", err)
	}
	return f, nil
}

var errContent = errors.New("must be base64 text of the file, or an uploadId must be given")

// inline decodes content that came in the frame: base64, bare or as a data URI.
func inline(raw json.RawMessage) ([]byte, error) {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) != nil || text == "" {
		return nil, errContent
	}
	if strings.HasPrefix(text, "data:") {
		_, after, ok := strings.Cut(text, ";base64,")
		if !ok {
			return nil, errContent
		}
		text = after
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errContent
	}
	return data, nil
}
