// Package s3sign signs the addresses of uploads to S3.
//
// Guarantees: an address is good for one object of one length and one SHA-256, until
// its time is over, and never replaces an object that is there.
package s3sign

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"laneway/shared/clock"
	"laneway/shared/upload"
)

// Signer signs for one bucket.
type Signer struct {
	client *s3.PresignClient
	bucket string
	clock  clock.Clock
}

// New makes a signer over a client of the bucket's region.
func New(client *s3.Client, bucket string, c clock.Clock) *Signer {
	return &Signer{s3.NewPresignClient(client), bucket, c}
}

// Sign implements upload.Signer.
func (s *Signer) Sign(ctx context.Context, u upload.Upload, until time.Time) (upload.Place, error) {
	sum, err := hex.DecodeString(u.SHA256)
	if err != nil {
		return upload.Place{}, fmt.Errorf("SHA-256: %w", err)
	}
	req, err := s.client.PresignPutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: &u.Key, ContentLength: &u.Size, IfNoneMatch: aws.String("*"),
		ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(sum)),
	}, s3.WithPresignExpires(until.Sub(s.clock.Now())))
	if err != nil {
		return upload.Place{}, err
	}
	p := upload.Place{URL: req.URL, Method: http.MethodPut, Headers: map[string]string{}}
	for name, values := range req.SignedHeader {
		// The client's own transport sends these two.
		if len(values) > 0 && name != "Host" && name != "Content-Length" {
			p.Headers[name] = values[0]
		}
	}
	return p, nil
}
