package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	blobs "laneway/shared/blob/s3"
	"laneway/shared/table"
)

// dropWithin is how long the deletion of one table may take.
const dropWithin = 5 * time.Minute

// drop goes through the tables and the bucket that a stack of the name has, or had.
func drop(ctx context.Context, c aws.Config, name string, yes bool, out io.Writer) error {
	db := dynamodb.NewFromConfig(c)
	found := 0
	for _, d := range table.Definitions() {
		there, err := dropTable(ctx, db, name+"-"+d.Name, yes, out)
		if err != nil {
			return err
		}
		found += there
	}
	bucket, err := bucketOf(ctx, c, name)
	if err != nil {
		return err
	}
	there, err := dropBucket(ctx, blobs.NewClient(c), bucket, yes, out)
	if err != nil {
		return err
	}
	switch found += there; {
	case found == 0:
		_, err = fmt.Fprintf(out, "%s has no data in %s\n", name, c.Region)
	case !yes:
		_, err = fmt.Fprintln(out, "nothing was deleted; -yes deletes all of this, for good")
	}
	return err
}

// bucketOf is the name of a stack's bucket, as infra gives it.
func bucketOf(ctx context.Context, c aws.Config, name string) (string, error) {
	id, err := account(ctx, c)
	return fmt.Sprintf("%s-%s-%s-blobs", name, id, c.Region), err
}

func account(ctx context.Context, c aws.Config) (string, error) {
	me, err := sts.NewFromConfig(c).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", fmt.Errorf("find the account: %w", err)
	}
	return aws.ToString(me.Account), nil
}

// bootstrapped looks for the bucket that CDK puts what it deploys into.
func bootstrapped(ctx context.Context, c aws.Config) error {
	id, err := account(ctx, c)
	if err != nil {
		return err
	}
	bucket := fmt.Sprintf("cdk-hnb659fds-assets-%s-%s", id, c.Region)
	if _, err := blobs.NewClient(c).HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &bucket}); err != nil {
		return fmt.Errorf("look for CDK's bucket %s: %w", bucket, err)
	}
	return nil
}

// emptyBucket empties the bucket of a stack that still has it.
func emptyBucket(ctx context.Context, c aws.Config, name string) error {
	bucket, err := bucketOf(ctx, c, name)
	if err != nil {
		return err
	}
	return empty(ctx, blobs.NewClient(c), bucket)
}

// dropTable returns 1 where the table was there.
func dropTable(ctx context.Context, db *dynamodb.Client, name string, yes bool, out io.Writer) (int, error) {
	t, err := db.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if _, absent := errors.AsType[*dynamotypes.ResourceNotFoundException](err); absent {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look at table %s: %w", name, err)
	}
	if !yes {
		_, err = fmt.Fprintf(out, "table  %s (%d bytes)\n", name, aws.ToInt64(t.Table.TableSizeBytes))
		return 1, err
	}
	if aws.ToBool(t.Table.DeletionProtectionEnabled) {
		if _, err := db.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &name, DeletionProtectionEnabled: aws.Bool(false)}); err != nil {
			return 1, fmt.Errorf("take the guard off table %s: %w", name, err)
		}
	}
	if _, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
		return 1, fmt.Errorf("delete table %s: %w", name, err)
	}
	err = dynamodb.NewTableNotExistsWaiter(db).Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, dropWithin)
	if err != nil {
		return 1, fmt.Errorf("wait for the end of table %s: %w", name, err)
	}
	_, err = fmt.Fprintf(out, "deleted table  %s\n", name)
	return 1, err
}

// dropBucket returns 1 where the bucket was there.
func dropBucket(ctx context.Context, client *s3.Client, name string, yes bool, out io.Writer) (int, error) {
	_, err := client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &name})
	if _, absent := errors.AsType[*s3types.NotFound](err); absent {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look at bucket %s: %w", name, err)
	}
	if !yes {
		_, err = fmt.Fprintf(out, "bucket %s\n", name)
		return 1, err
	}
	if err := empty(ctx, client, name); err != nil {
		return 1, err
	}
	if _, err := client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &name}); err != nil {
		return 1, fmt.Errorf("delete bucket %s: %w", name, err)
	}
	_, err = fmt.Fprintf(out, "deleted bucket %s\n", name)
	return 1, err
}

// empty deletes all objects of a bucket without versions, a page at a time.
func empty(ctx context.Context, client *s3.Client, name string) error {
	pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: &name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if _, absent := errors.AsType[*s3types.NoSuchBucket](err); absent {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list bucket %s: %w", name, err)
		}
		var ids []s3types.ObjectIdentifier
		for _, o := range page.Contents {
			ids = append(ids, s3types.ObjectIdentifier{Key: o.Key})
		}
		if len(ids) == 0 {
			continue
		}
		gone, err := client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &name, Delete: &s3types.Delete{Objects: ids, Quiet: aws.Bool(true)}})
		if err != nil {
			return fmt.Errorf("empty bucket %s: %w", name, err)
		}
		if len(gone.Errors) > 0 {
			return fmt.Errorf("empty bucket %s: %d objects stayed, the first with %s", name, len(gone.Errors), aws.ToString(gone.Errors[0].Code))
		}
	}
	return nil
}
