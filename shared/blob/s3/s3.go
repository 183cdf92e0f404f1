// Package s3 is the blob port over an S3 bucket.
//
// Guarantees, beside those of the port: a PutNew whose answer was lost and that
// the SDK sent again still answers by what it did, because each carries an id of
// its own; values over the limit are refused before they are read. S3 is strongly
// consistent, so nothing is cached here.
package s3

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"laneway/shared/blob"
	"laneway/shared/id"
	"laneway/shared/meter"
)

const (
	// writeID is the metadata member that tells whose PutNew an object is.
	writeID = "laneway-write"
	// conflictTries is how often a PutNew is sent that S3 answers with "another
	// write is going on": the next try knows who won.
	conflictTries = 5
	// pageSize is the most keys that S3 lists at once.
	pageSize = 1000
)

// API is what the store needs of *s3.Client.
type API interface {
	PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	GetObject(ctx context.Context, in *s3.GetObjectInput, opts ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	HeadObject(ctx context.Context, in *s3.HeadObjectInput, opts ...func(*s3.Options)) (*s3.HeadObjectOutput, error)
	DeleteObject(ctx context.Context, in *s3.DeleteObjectInput, opts ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
	ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, opts ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
}

// NewClient makes a client for AWS or, where an endpoint is configured, for that:
// with the bucket in the path, since a host name per bucket would not resolve.
func NewClient(c aws.Config, options ...func(*s3.Options)) *s3.Client {
	return s3.NewFromConfig(c, append(options, func(o *s3.Options) {
		o.UsePathStyle = o.UsePathStyle || o.BaseEndpoint != nil
	})...)
}

// Config is what New takes.
type Config struct {
	Bucket  string
	MaxSize int       // the largest value in bytes; zero: blob.MaxSize
	IDs     id.Source // of writes; zero: id.UUID
}

// Store implements blob.Store.
type Store struct {
	api    API
	bucket *string
	max    int
	ids    id.Source
}

var _ blob.Store = (*Store)(nil)

// New makes a store over a bucket that exists.
func New(api API, c Config) (*Store, error) {
	if api == nil || c.Bucket == "" || c.MaxSize < 0 {
		return nil, errors.New("blob/s3: no client, no bucket, or a negative size")
	}
	s := &Store{api: api, bucket: &c.Bucket, max: cmp.Or(c.MaxSize, blob.MaxSize), ids: c.IDs}
	if s.ids == nil {
		s.ids = id.UUID
	}
	return s, nil
}

// Put implements blob.Store.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	if err := s.checkPut(ctx, key, data); err != nil {
		return err
	}
	meter.From(ctx).Add(meter.BlobPuts, 1)
	_, err := s.api.PutObject(ctx, &s3.PutObjectInput{Bucket: s.bucket, Key: &key, Body: bytes.NewReader(data)})
	return classify("put", err)
}

// PutNew implements blob.Store.
func (s *Store) PutNew(ctx context.Context, key string, data []byte) error {
	if err := s.checkPut(ctx, key, data); err != nil {
		return err
	}
	mine := s.ids()
	var err error
	for range conflictTries {
		meter.From(ctx).Add(meter.BlobPuts, 1)
		_, err = s.api.PutObject(ctx, &s3.PutObjectInput{
			Bucket: s.bucket, Key: &key, Body: bytes.NewReader(data),
			IfNoneMatch: aws.String("*"), Metadata: map[string]string{writeID: mine},
		})
		if !isConflict(err) {
			break
		}
	}
	err = classify("put new", err)
	if !errors.Is(err, blob.ErrExists) {
		return err
	}
	// Taken, perhaps by this very call: its first answer may have been lost.
	meter.From(ctx).Add(meter.BlobGets, 1)
	head, herr := s.api.HeadObject(ctx, &s3.HeadObjectInput{Bucket: s.bucket, Key: &key})
	if herr == nil && head.Metadata[writeID] == mine {
		return nil
	}
	return err
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := check(ctx, key); err != nil {
		return nil, err
	}
	meter.From(ctx).Add(meter.BlobGets, 1)
	out, err := s.api.GetObject(ctx, &s3.GetObjectInput{Bucket: s.bucket, Key: &key})
	if err != nil {
		return nil, classify("get", err)
	}
	defer out.Body.Close()
	if n := aws.ToInt64(out.ContentLength); n > int64(s.max) {
		return nil, fmt.Errorf("%w: %d bytes", blob.ErrTooLarge, n)
	}
	data, err := io.ReadAll(io.LimitReader(out.Body, int64(s.max)+1))
	if err != nil {
		return nil, fmt.Errorf("blob/s3: get: %w", err)
	}
	if len(data) > s.max { // where the length was not told
		return nil, fmt.Errorf("%w: over %d bytes", blob.ErrTooLarge, s.max)
	}
	return data, nil
}

// Delete implements blob.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := check(ctx, key); err != nil {
		return err
	}
	_, err := s.api.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: s.bucket, Key: &key})
	if err = classify("delete", err); errors.Is(err, blob.ErrNotFound) {
		return nil
	}
	return err
}

// List implements blob.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	if err := blob.ValidList(prefix, after, limit); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var keys []string
	in := &s3.ListObjectsV2Input{Bucket: s.bucket, Prefix: &prefix}
	if after != "" {
		in.StartAfter = &after
	}
	for len(keys) < limit {
		in.MaxKeys = aws.Int32(int32(min(limit-len(keys), pageSize)))
		meter.From(ctx).Add(meter.BlobPuts, 1) // billed like a put
		out, err := s.api.ListObjectsV2(ctx, in)
		if err != nil {
			return nil, classify("list", err)
		}
		for _, o := range out.Contents {
			keys = append(keys, aws.ToString(o.Key))
		}
		if !aws.ToBool(out.IsTruncated) || out.NextContinuationToken == nil {
			break
		}
		in.ContinuationToken = out.NextContinuationToken
	}
	return keys, nil
}

func check(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return blob.ValidKey(key)
}

func (s *Store) checkPut(ctx context.Context, key string, data []byte) error {
	if err := check(ctx, key); err != nil {
		return err
	}
	if len(data) > s.max {
		return fmt.Errorf("%w: %d bytes", blob.ErrTooLarge, len(data))
	}
	return nil
}
