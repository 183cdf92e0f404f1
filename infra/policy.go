package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"laneway/shared/model/route"
)

// wildcardReason stands for the resources that have no name when a stack is
// deployed. The template test lists them one by one.
const wildcardReason = "Named only as they come up: streams of the function's own log group, objects of the stack's bucket, connections of the stack's stage, schedules of the stack's group, foundation models behind a cross-region profile. The part before the star is always this stack's."

// entitle turns a grant into statements on what this stack has.
func (p *Parts) entitle(role awsiam.Role, g grant) {
	tables := g.tables()
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		allow(role, tables[name], *p.Storage.Tables[name].TableArn())
	}
	for _, index := range g.indexes {
		allow(role, indexActions, *p.Storage.Tables["sessions"].TableArn()+"/index/"+index)
	}
	for _, lane := range g.sends {
		allow(role, sendActions, *p.Lanes.Queues[lane].QueueArn())
	}
	for _, lane := range g.receives {
		allow(role, pollActions, *p.Lanes.Queues[lane].QueueArn())
	}
	if g.timers {
		allow(role, sendActions, *p.Timers.Queue.QueueArn())
	}
	if g.fires {
		allow(role, pollActions, *p.Timers.Queue.QueueArn())
	}
	if g.blobs {
		allow(role, objectActions, *p.Storage.Bucket.BucketArn()+"/*")
		allow(role, listActions, *p.Storage.Bucket.BucketArn())
	}
	if g.posts {
		stage := *p.Front.API.ApiId() + "/" + p.Config.Stage
		allow(
			role, postActions,
			arn(p.Front.scope, "execute-api", stage, "POST/@connections/*", awscdk.ArnFormat_SLASH_RESOURCE_NAME),
			arn(p.Front.scope, "execute-api", stage, "DELETE/@connections/*", awscdk.ArnFormat_SLASH_RESOURCE_NAME),
		)
	}
	if g.secret {
		allow(role, secretActions, p.Secrets.ARN)
	}
	if g.schedules {
		schedules := []string{arn(p.Front.scope, "scheduler", "schedule", p.Schedule.Group+"/*", awscdk.ArnFormat_SLASH_RESOURCE_NAME)}
		if p.Config.Emulator {
			// MiniStack judges a schedule as one of this group, whatever its group.
			schedules = append(schedules, arn(p.Front.scope, "scheduler", "schedule", "default/*", awscdk.ArnFormat_SLASH_RESOURCE_NAME))
		}
		allow(role, scheduleActions, schedules...)
		role.AddToPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions:   list(passActions),
			Resources: &[]*string{p.Schedule.Role.RoleArn()},
			Conditions: &map[string]any{
				"StringEquals": map[string]any{"iam:PassedToService": "scheduler.amazonaws.com"},
			},
		}))
	}
	for _, chosen := range append(route.SplitList(p.Config.Fallbacks), p.Config.Model) {
		if model, ok := strings.CutPrefix(chosen, "bedrock/"); ok && g.models {
			allow(role, modelActions, bedrockResources(p.Front.scope, model)...)
		}
	}
}

// bedrockResources are the ARNs that a call of the model is judged by. The id of a
// cross-region profile begins with the area it spans, and a call of one is judged
// by the model in whatever region of the area it goes to.
func bedrockResources(scope constructs.Construct, model string) []string {
	area, rest, found := strings.Cut(model, ".")
	if found && slices.Contains([]string{"us", "eu", "apac", "jp", "au", "ca", "sa", "us-gov", "global"}, area) {
		return []string{
			arn(scope, "bedrock", "inference-profile", model, awscdk.ArnFormat_SLASH_RESOURCE_NAME),
			"arn:" + *awscdk.Aws_PARTITION() + ":bedrock:*::foundation-model/" + rest,
		}
	}
	return []string{"arn:" + *awscdk.Aws_PARTITION() + ":bedrock:" + *awscdk.Aws_REGION() + "::foundation-model/" + model}
}

// allow adds one statement to a role.
func allow(role awsiam.Role, actions []string, resources ...string) {
	role.AddToPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: list(actions), Resources: list(resources),
	}))
}

// arn names a resource of the stack's own account and region.
func arn(scope constructs.Construct, service, resource, name string, format awscdk.ArnFormat) string {
	return *awscdk.Stack_Of(scope).FormatArn(&awscdk.ArnComponents{
		Service: jsii.String(service), Resource: jsii.String(resource), ResourceName: jsii.String(name), ArnFormat: format,
	})
}

// list is jsii's form of a list of strings.
func list(in []string) *[]*string {
	out := make([]*string, len(in))
	for i, s := range in {
		out[i] = jsii.String(s)
	}
	return &out
}
