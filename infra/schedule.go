package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdadestinations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Schedule is where the schedules of jobs live. The functions make one schedule per
// enabled job, in this group; the group goes with the stack and takes them along.
// Each calls the scheduler function by the role here, and what can't be delivered
// ends in the queue here.
type Schedule struct {
	scope     constructs.Construct
	Group     string
	Dead      awssqs.Queue
	Role      awsiam.Role
	Target    string // ARN of the scheduler function
	Scheduler Function
}

// NewSchedule builds group, role and queue; Listen builds the function.
func NewSchedule(scope constructs.Construct, c Config) Schedule {
	s := Schedule{
		scope: constructs.NewConstruct(scope, jsii.String("Schedule")),
		Group: c.Name,
		// By name, because the function itself is told where its schedules point.
		Target: arn(scope, "lambda", "function", c.Name+"-"+Scheduler, awscdk.ArnFormat_COLON_RESOURCE_NAME),
	}
	awsscheduler.NewCfnScheduleGroup(s.scope, jsii.String("group"), &awsscheduler.CfnScheduleGroupProps{Name: jsii.String(s.Group)})
	s.Dead = awssqs.NewQueue(s.scope, jsii.String("dead"), &awssqs.QueueProps{
		QueueName:       jsii.String(c.Name + "-schedule-dead"),
		RetentionPeriod: awscdk.Duration_Days(jsii.Number(deadLetterDays)),
		Encryption:      awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL:      jsii.Bool(!c.Emulator),
		RemovalPolicy:   awscdk.RemovalPolicy_DESTROY,
	})
	suppress(s.Dead, "AwsSolutions-SQS3", "This is the dead-letter queue.")
	s.Role = awsiam.NewRole(s.scope, jsii.String("role"), &awsiam.RoleProps{
		Description: jsii.String("Taken by the schedules of " + c.Name + " to call the scheduler function"),
		// Only schedules of this group, of this account, can take it.
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("scheduler.amazonaws.com"), &awsiam.ServicePrincipalOpts{
			Conditions: &map[string]any{
				"StringEquals": map[string]any{
					"aws:SourceAccount": awscdk.Aws_ACCOUNT_ID(),
					"aws:SourceArn":     arn(scope, "scheduler", "schedule-group", s.Group, awscdk.ArnFormat_SLASH_RESOURCE_NAME),
				},
			},
		}),
	})
	allow(s.Role, invokeActions, s.Target)
	allow(s.Role, sendActions, *s.Dead.QueueArn())
	return s
}

// Listen adds the function that accepts the run of a slot. A slot has a run id of
// its own, so a repeated event costs a read; what failed three times joins what
// could not be delivered.
func (s *Schedule) Listen(parts *Parts) {
	s.Scheduler = parts.NewFunction(s.scope, Scheduler, FunctionProps{
		OnFailure: awslambdadestinations.NewSqsDestination(s.Dead),
		Retries:   2,
		MaxAge:    awscdk.Duration_Hours(jsii.Number(1)),
	})
}
