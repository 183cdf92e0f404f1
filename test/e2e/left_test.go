package e2e

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	blobs "laneway/shared/blob/s3"
)

// nothingLeft looks for what a stack of the name would have, and wants none of it.
func (s *stack) nothingLeft(t *testing.T) {
	t.Helper()
	ctx, prefix := t.Context(), s.name+"-"
	var left []string
	note := func(kind, name string) {
		if strings.HasPrefix(name, prefix) || name == s.name {
			left = append(left, kind+" "+name)
		}
	}
	check := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	tables, err := dynamodb.NewFromConfig(s.aws).ListTables(ctx, &dynamodb.ListTablesInput{})
	check(err)
	for _, name := range tables.TableNames {
		note("table", name)
	}
	queues, err := sqs.NewFromConfig(s.aws).ListQueues(ctx, &sqs.ListQueuesInput{})
	check(err)
	for _, u := range queues.QueueUrls {
		note("queue", u[strings.LastIndexByte(u, '/')+1:])
	}
	buckets, err := blobs.NewClient(s.aws).ListBuckets(ctx, &s3.ListBucketsInput{})
	check(err)
	for _, b := range buckets.Buckets {
		note("bucket", aws.ToString(b.Name))
	}
	functions, err := lambda.NewFromConfig(s.aws).ListFunctions(ctx, &lambda.ListFunctionsInput{})
	check(err)
	for _, f := range functions.Functions {
		note("function", aws.ToString(f.FunctionName))
	}
	mappings, err := lambda.NewFromConfig(s.aws).ListEventSourceMappings(ctx, &lambda.ListEventSourceMappingsInput{})
	check(err)
	for _, m := range mappings.EventSourceMappings {
		arn := aws.ToString(m.EventSourceArn)
		note("mapping of", arn[strings.LastIndexByte(arn, ':')+1:])
	}
	roles, err := iam.NewFromConfig(s.aws).ListRoles(ctx, &iam.ListRolesInput{})
	check(err)
	for _, r := range roles.Roles {
		note("role", aws.ToString(r.RoleName))
	}
	groups, err := scheduler.NewFromConfig(s.aws).ListScheduleGroups(ctx, &scheduler.ListScheduleGroupsInput{})
	check(err)
	for _, g := range groups.ScheduleGroups {
		note("schedule group", aws.ToString(g.Name))
	}
	secrets, err := secretsmanager.NewFromConfig(s.aws).ListSecrets(ctx, &secretsmanager.ListSecretsInput{})
	check(err)
	for _, x := range secrets.SecretList {
		if strings.HasSuffix(aws.ToString(x.Description), "of "+s.name+", a JSON object") {
			left = append(left, "secret "+aws.ToString(x.Name))
		}
	}
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
