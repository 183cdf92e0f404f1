package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"

	"laneway/shared/client"
	"laneway/shared/protocol"
	"laneway/shared/upload"
)

// envelope is what a frame takes beside the message, generously.
const envelope = 2 << 10

// attach puts the files of the message where the gateway says, and names them in the
// request. A message that is too long for the gateway's frames goes the same way.
func (t *turn) attach(ctx context.Context, conn *client.Conn) error {
	for _, path := range t.files {
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("--file: %w", err)
		}
		kind := mime.TypeByExtension(filepath.Ext(path))
		if err := t.upload(ctx, conn, filepath.Base(path), kind, data); err != nil {
			return fmt.Errorf("--file %s: %w", path, err)
		}
	}
	most := conn.Hello().Policy.MaxPayload
	if most == 0 || int64(protocol.EncodedLen(t.params.Message))+envelope <= most {
		return nil
	}
	if err := t.upload(ctx, conn, "message.txt", "text/plain; charset=utf-8", []byte(t.params.Message)); err != nil {
		return fmt.Errorf("the message is too long for a frame of this gateway: %w", err)
	}
	t.params.Message = "The message is in the attached file message.txt."
	return nil
}

// upload puts one file and adds it to the request.
func (t *turn) upload(ctx context.Context, conn *client.Conn, name, kind string, data []byte) error {
	if len(data) == 0 {
		return errors.New("is empty")
	}
	t.spin.say("uploading " + name)
	sum := sha256.Sum256(data)
	var place upload.Created
	err := conn.Call(ctx, "uploads.create", protocol.UploadsCreateParams{
		SizeBytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), FileName: name, MimeType: kind,
	}, &place)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, place.Method, place.URL, bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("the gateway gave an address that is none: %w", err)
	}
	for name, value := range place.Headers {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode >= http.StatusMultipleChoices {
		why, _ := io.ReadAll(io.LimitReader(res.Body, 300))
		return fmt.Errorf("not taken: %s: %s", res.Status, bytes.TrimSpace(why))
	}
	t.params.Attachments = append(t.params.Attachments, protocol.Attachment{UploadID: place.UploadID, FileName: name, MimeType: kind})
	return nil
}
