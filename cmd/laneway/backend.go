package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"laneway/shared/blob/s3"
	"laneway/shared/local"
	"laneway/shared/queue"
	"laneway/shared/queue/sqs"
	"laneway/shared/table/dynamo"
)

// The backends of serve.
const (
	backendFiles = "files"
	backendAWS   = "aws"
)

// awsConnections is how many connections to one service are kept: every run and
// every poller of a lane has one now and then.
const awsConnections = 256

// awsBackend says which stores of an AWS account, or of the endpoint that
// AWS_ENDPOINT_URL names, a server works over. Tables, queues and bucket have the
// names that the stack of the same name gives them.
type awsBackend struct {
	Name   string
	Create bool        // make what is missing
	Lanes  []queue.Def // nil: queue.Definitions
	Log    *slog.Logger
}

// open finds the stores, or makes them.
func (b awsBackend) open(ctx context.Context) (*local.Stores, error) {
	wire := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, awsConnections
	})
	c, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(wire))
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	if c.Region == "" {
		return nil, errors.New("--backend aws needs AWS_REGION, or a region in the profile")
	}
	db, sq, bucket := dynamodb.NewFromConfig(c), awssqs.NewFromConfig(c), s3.NewClient(c)
	bucketName, err := b.bucket(ctx, c)
	if err != nil {
		return nil, err
	}
	queues, err := b.queues(ctx, sq)
	if err != nil {
		return nil, err
	}
	if b.Create {
		if err := b.create(ctx, db, bucket, bucketName, c.Region); err != nil {
			return nil, err
		}
	}
	sender, err := sqs.New(sq, queues.Config)
	if err != nil {
		return nil, err
	}
	poller, err := sqs.NewPoller(sq, sqs.PollerConfig{Config: queues.Config, Lanes: b.Lanes, Log: b.Log})
	if err != nil {
		return nil, err
	}
	blobs, err := s3.New(bucket, s3.Config{Bucket: bucketName})
	if err != nil {
		return nil, err
	}
	stores := &local.Stores{
		Table: dynamo.New(db, dynamo.Config{Prefix: b.Name + "-"}), Queue: sender, Timers: sender, Blobs: blobs,
		Receive: poller.Run, Shared: true,
	}
	if len(queues.Dead) > 0 {
		stores.Dead, err = sqs.NewDeadLetters(sq, queues)
	}
	return stores, err
}

// bucket is the name of the stack's bucket, which the account is part of.
func (b awsBackend) bucket(ctx context.Context, c aws.Config) (string, error) {
	me, err := sts.NewFromConfig(c).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", fmt.Errorf("find the AWS account: %w", err)
	}
	return fmt.Sprintf("%s-%s-%s-blobs", b.Name, aws.ToString(me.Account), c.Region), nil
}

// queues finds the queues, or makes them. Those of dead letters are known where they
// were made here: a deployed stack has one for all lanes, which people look after.
func (b awsBackend) queues(ctx context.Context, client *awssqs.Client) (sqs.Queues, error) {
	if b.Create {
		return sqs.CreateQueues(ctx, client, b.Name, sqs.Settings{})
	}
	find := func(name string) (string, error) {
		out, err := client.GetQueueUrl(ctx, &awssqs.GetQueueUrlInput{QueueName: &name})
		if err != nil {
			return "", fmt.Errorf("queue %s: %w (--create makes what is missing)", name, err)
		}
		return aws.ToString(out.QueueUrl), nil
	}
	found := sqs.Queues{Config: sqs.Config{QueueURLs: map[queue.Lane]string{}}}
	var err error
	for _, d := range queue.Definitions() {
		if found.QueueURLs[d.Lane], err = find(b.Name + "-" + string(d.Lane) + ".fifo"); err != nil {
			return found, err
		}
	}
	found.TimerURL, err = find(b.Name + "-timers")
	return found, err
}

// create makes tables and bucket where they are missing.
func (b awsBackend) create(ctx context.Context, db *dynamodb.Client, client *awss3.Client, bucket, region string) error {
	if err := dynamo.CreateTables(ctx, db, b.Name+"-"); err != nil {
		return err
	}
	if _, err := client.HeadBucket(ctx, &awss3.HeadBucketInput{Bucket: &bucket}); err == nil {
		return nil
	}
	in := &awss3.CreateBucketInput{Bucket: &bucket}
	if region != "us-east-1" { // which takes no constraint that names it
		in.CreateBucketConfiguration = &s3types.CreateBucketConfiguration{LocationConstraint: s3types.BucketLocationConstraint(region)}
	}
	_, err := client.CreateBucket(ctx, in)
	if _, mine := errors.AsType[*s3types.BucketAlreadyOwnedByYou](err); err != nil && !mine {
		return fmt.Errorf("create bucket %s: %w", bucket, err)
	}
	return nil
}
