package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"laneway/shared/table"
)

// Storage is what must not be lost: the tables, built from the schema beside the
// port, and the bucket of large values. All of it has fixed names, so that a new
// stack of the same name takes over what an old one left.
type Storage struct {
	scope  constructs.Construct
	Tables map[string]awsdynamodb.Table
	Bucket awss3.Bucket
	Prefix string // of the tables' deployed names
}

// NewStorage builds it. With c.Retain nothing here goes when the stack goes, and
// the tables refuse to be deleted at all.
func NewStorage(scope constructs.Construct, c Config) Storage {
	s := Storage{
		scope:  constructs.NewConstruct(scope, jsii.String("Storage")),
		Tables: map[string]awsdynamodb.Table{},
		Prefix: c.Name + "-",
	}
	for _, d := range table.Definitions() {
		s.Tables[d.Name] = s.newTable(d, c)
	}
	s.Bucket = s.newBucket(c)
	return s
}

func (s Storage) newTable(d table.Def, c Config) awsdynamodb.Table {
	t := awsdynamodb.NewTable(s.scope, jsii.String(d.Name), &awsdynamodb.TableProps{
		TableName:           jsii.String(s.Prefix + d.Name),
		PartitionKey:        stringKey("pk"),
		SortKey:             stringKey("sk"),
		BillingMode:         awsdynamodb.BillingMode_PAY_PER_REQUEST,
		TimeToLiveAttribute: jsii.String(table.TTLAttr),
		PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: jsii.Bool(true),
		},
		// The key that AWS owns: encrypted all the same, and without a charge for
		// each request, which a key of the account would add to every turn.
		Encryption:         awsdynamodb.TableEncryption_DEFAULT,
		DeletionProtection: jsii.Bool(c.Retain),
		RemovalPolicy:      removal(c),
	})
	for _, i := range d.Indexes {
		t.AddGlobalSecondaryIndex(&awsdynamodb.GlobalSecondaryIndexProps{
			IndexName:      jsii.String(i.Name),
			PartitionKey:   stringKey(i.PK),
			SortKey:        stringKey(i.SK),
			ProjectionType: awsdynamodb.ProjectionType_KEYS_ONLY,
		})
	}
	return t
}

func (s Storage) newBucket(c Config) awss3.Bucket {
	stack := awscdk.Stack_Of(s.scope)
	b := awss3.NewBucket(s.scope, jsii.String("blobs"), &awss3.BucketProps{
		BucketName:        jsii.String(c.Name + "-" + *stack.Account() + "-" + *stack.Region() + "-blobs"),
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		ObjectOwnership:   awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		EnforceSSL:        jsii.Bool(!c.Emulator),
		RemovalPolicy:     removal(c),
		LifecycleRules: &[]*awss3.LifecycleRule{
			{
				Id:                                  jsii.String("unfinished-uploads"),
				AbortIncompleteMultipartUploadAfter: awscdk.Duration_Days(jsii.Number(1)),
			},
			{
				// What a client put under an upload address and never named in a
				// call. A run copies what it takes.
				Id:         jsii.String("uploads"),
				Prefix:     jsii.String("uploads/"),
				Expiration: awscdk.Duration_Days(jsii.Number(c.UploadDays)),
			},
		},
	})
	suppress(b, "AwsSolutions-S1", "Values are reached by the functions' roles and by addresses that the gateway signs for ten minutes; each is a line in the functions' logs. A log bucket would cost more than the bucket.")
	return b
}

func stringKey(name string) *awsdynamodb.Attribute {
	return &awsdynamodb.Attribute{Name: jsii.String(name), Type: awsdynamodb.AttributeType_STRING}
}

// removal is what happens to data when its stack, or its resource in it, goes.
func removal(c Config) awscdk.RemovalPolicy {
	if c.Retain {
		return awscdk.RemovalPolicy_RETAIN
	}
	return awscdk.RemovalPolicy_DESTROY
}
