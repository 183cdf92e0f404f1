package upload_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"laneway/shared/blob/dir"
	"laneway/shared/clock/clocktest"
	"laneway/shared/model"
	"laneway/shared/protocol"
	"laneway/shared/table/tabletest"
	"laneway/shared/upload"
)

// nowhere signs addresses that nobody listens to.
type nowhere struct{}

func (nowhere) Sign(_ context.Context, u upload.Upload, _ time.Time) (upload.Place, error) {
	return upload.Place{URL: "http://127.0.0.1/" + u.Key, Method: "PUT"}, nil
}

type bundle struct {
	blobs *dir.Store
	clock *clocktest.Manual
}

func setup(t *testing.T) (*upload.Service, bundle) {
	t.Helper()
	blobs, err := dir.Open(dir.Config{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blobs.Close() })
	c := clocktest.At(time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC))
	return upload.New(upload.Service{Store: tabletest.NewModel(), Blobs: blobs, Signer: nowhere{}, Clock: c, MaxSize: 1 << 20}), bundle{blobs, c}
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// put does what a client does with a place.
func put(t *testing.T, s *upload.Service, b bundle, tenant string, data []byte, name, mime string) string {
	t.Helper()
	c, err := s.Create(t.Context(), tenant, protocol.UploadsCreateParams{SizeBytes: int64(len(data)), SHA256: sum(data), FileName: name, MimeType: mime})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.blobs.PutNew(t.Context(), "uploads/"+tenant+"/"+c.UploadID, data); err != nil {
		t.Fatal(err)
	}
	return c.UploadID
}

func TestUpload_WhatWasPutIsWhatTheModelSees(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	png := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte{1, 0, 2}, 50)...)
	raw, err := s.Attach(t.Context(), "a", "agent", []protocol.Attachment{
		{UploadID: put(t, s, b, "a", []byte("the notes"), "../../notes.txt", "text/plain; charset=utf-8")},
		{UploadID: put(t, s, b, "a", png, "p.png", "")},
		{UploadID: put(t, s, b, "a", []byte{0, 1, 2}, "x.bin", "application/octet-stream")},
	})
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := s.Blocks(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	if len(blocks) != 3 || blocks[0].Text != "[Attached file: notes.txt]\nthe notes" {
		t.Errorf("text: %+v", blocks)
	}
	if blocks[1].Type != model.Image || blocks[1].MimeType != "image/png" || !bytes.Equal(blocks[1].Data, png) {
		t.Errorf("image: %+v", blocks[1])
	}
	if !strings.Contains(blocks[2].Text, "x.bin") || !strings.Contains(blocks[2].Text, "3 bytes") {
		t.Errorf("binary: %+v", blocks[2])
	}
}

func TestUpload_OfOthersUnputOrExpiredDoesNotExist(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	mine := put(t, s, b, "a", []byte("mine"), "m.txt", "")
	unput, err := s.Create(t.Context(), "a", protocol.UploadsCreateParams{SizeBytes: 4, SHA256: sum([]byte("late"))})
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what, tenant, id string) {
		t.Helper()
		_, err := s.Attach(t.Context(), tenant, "agent", []protocol.Attachment{{UploadID: id}})
		var e *protocol.Error
		if !errors.As(err, &e) || e.Code != protocol.CodeInvalidRequest || !strings.Contains(e.Message, "/attachments/0/uploadId") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("another tenant's", "b", mine)
	refused("not put", "a", unput.UploadID)
	refused("never made", "a", "nothing")
	b.clock.Advance(upload.NameWithin)
	refused("expired", "a", mine)
}

func TestUpload_ChangedBytesAreNotRead(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	id := put(t, s, b, "a", []byte("as named"), "f.txt", "")
	raw, err := s.Attach(t.Context(), "a", "agent", []protocol.Attachment{{UploadID: id}})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.blobs.Put(t.Context(), "uploads/a/"+id, []byte("replaced")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Blocks(t.Context(), raw); err == nil || strings.Contains(err.Error(), "replaced") {
		t.Errorf("changed bytes: %v", err)
	}
}

func TestUpload_InlineContentIsStoredByItsDigest(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for name, content := range map[string]string{
		"base64":   base64.StdEncoding.EncodeToString([]byte("inline text")),
		"data URI": "data:text/plain;base64," + base64.StdEncoding.EncodeToString([]byte("inline text")),
	} {
		c, _ := json.Marshal(content)
		raw, err := s.Attach(t.Context(), "a", "agent", []protocol.Attachment{{Content: c, FileName: "i.txt"}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if blocks, err := s.Blocks(t.Context(), raw); err != nil || !strings.HasSuffix(blocks[0].Text, "inline text") {
			t.Errorf("%s: %+v %v", name, blocks, err)
		}
	}
	for _, bad := range []string{``, `""`, `"no base64!"`, `{"a":1}`, `"data:text/plain,plain"`} {
		_, err := s.Attach(t.Context(), "a", "chat.send", []protocol.Attachment{{Content: json.RawMessage(bad)}})
		var e *protocol.Error
		if !errors.As(err, &e) || !strings.Contains(e.Message, "/attachments/0/content") {
			t.Errorf("content %s: %v", bad, err)
		}
	}
}

func TestUpload_OverTheLimitNamesIt(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	_, err := s.Create(t.Context(), "a", protocol.UploadsCreateParams{SizeBytes: 1<<20 + 1, SHA256: sum(nil)})
	var e *protocol.Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, "sizeBytes") || !strings.Contains(e.Message, "1048576") {
		t.Error(err)
	}
}
