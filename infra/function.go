package main

import (
	"fmt"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"laneway/shared/queue"
)

// Parts are what the functions are told about and given rights on.
type Parts struct {
	Config   Config
	Storage  Storage
	Lanes    Lanes
	Timers   Timers
	Front    Front
	Secrets  Secrets
	Schedule Schedule
}

// Function is a deployed function with its role and log.
type Function struct {
	awslambda.Function
	Role awsiam.Role
	Log  awslogs.LogGroup
}

// FunctionProps are what differs between functions beside their sizes and grants.
type FunctionProps struct {
	Recursive bool                   // may feed itself through a queue
	OnFailure awslambda.IDestination // for asynchronous events; none by default
	Retries   int                    // of a failed asynchronous event
	MaxAge    awscdk.Duration        // of an asynchronous event; six hours by default
}

// NewFunction builds a function out of its zip, with a log group that ends, a role
// that holds its grant and nothing else, and the environment of env.go.
func (p *Parts) NewFunction(scope constructs.Construct, name string, props FunctionProps) Function {
	c, size := p.Config, p.Config.Sizes[name]
	full := c.Name + "-" + name
	log := awslogs.NewLogGroup(scope, jsii.String(name+"-log"), &awslogs.LogGroupProps{
		LogGroupName:  jsii.String("/aws/lambda/" + full),
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
	// In days; the property of the construct is a list of names for some of them.
	if raw, ok := log.Node().DefaultChild().(awslogs.CfnLogGroup); ok {
		raw.SetRetentionInDays(jsii.Number(c.LogDays))
	}
	role := awsiam.NewRole(scope, jsii.String(name+"-role"), &awsiam.RoleProps{
		Description: jsii.String("Rights of " + full),
		AssumedBy:   awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
	})
	allow(role, logActions, *log.LogGroupArn())
	p.entitle(role, grants()[name])

	f := awslambda.NewFunction(scope, jsii.String(name), &awslambda.FunctionProps{
		FunctionName:  jsii.String(full),
		Description:   jsii.String(fmt.Sprintf("%s of %s", name, c.Name)),
		Runtime:       awslambda.Runtime_PROVIDED_AL2023(),
		Architecture:  architecture(c.Architecture),
		Handler:       jsii.String("bootstrap"),
		Code:          awslambda.Code_FromAsset(jsii.String(c.asset(name)), nil),
		MemorySize:    jsii.Number(size.MemoryMB),
		Timeout:       awscdk.Duration_Seconds(jsii.Number(size.TimeoutSeconds)),
		Environment:   p.environment(name),
		Role:          role,
		LogGroup:      log,
		RecursiveLoop: recursion(props.Recursive),
		RetryAttempts: retries(name, props.Retries),
		MaxEventAge:   props.MaxAge,
		OnFailure:     props.OnFailure,
	})
	suppress(role, "AwsSolutions-IAM5", wildcardReason)
	return Function{Function: f, Role: role, Log: log}
}

// environment is what a function reads. Secrets are named in it, never held.
func (p *Parts) environment(name string) *map[string]*string {
	g := grants()[name]
	env := map[string]string{
		EnvStack:          p.Config.Name,
		EnvTablePrefix:    p.Storage.Prefix,
		EnvQueueMain:      *p.Lanes.Queues[queue.Main].QueueUrl(),
		EnvQueueCron:      *p.Lanes.Queues[queue.Cron].QueueUrl(),
		EnvQueueSubagent:  *p.Lanes.Queues[queue.Subagent].QueueUrl(),
		EnvTimer:          *p.Timers.Queue.QueueUrl(),
		EnvBlobBucket:     *p.Storage.Bucket.BucketName(),
		EnvStageCallback:  p.Front.Callback,
		EnvLogLevel:       p.Config.LogLevel,
		EnvTimeoutSeconds: strconv.Itoa(p.Config.Sizes[name].TimeoutSeconds),
	}
	for key, value := range map[string]string{
		EnvModel: p.Config.Model, EnvFallbacks: p.Config.Fallbacks, EnvReset: p.Config.SessionReset, EnvQueueRules: p.Config.Queue, EnvInbound: p.Config.Inbound, EnvFallbackSkip: p.Config.FallbackSkip,
		EnvStuckWarn: seconds(p.Config.StuckWarn), EnvStuckAbort: seconds(p.Config.StuckAbort),
	} {
		if value != "" {
			env[key] = value
		}
	}
	if g.secret {
		env[EnvSecret] = p.Secrets.ARN
	}
	if g.schedules {
		env[EnvScheduleGroup] = p.Schedule.Group
		env[EnvScheduleRole] = *p.Schedule.Role.RoleArn()
		env[EnvScheduleDLQ] = *p.Schedule.Dead.QueueArn()
		env[EnvSchedulerARN] = p.Schedule.Target
	}
	out := make(map[string]*string, len(env))
	for k, v := range env {
		out[k] = jsii.String(v)
	}
	return &out
}

func architecture(a Architecture) awslambda.Architecture {
	if a == X8664 {
		return awslambda.Architecture_X86_64()
	}
	return awslambda.Architecture_ARM_64()
}

func recursion(allowed bool) awslambda.RecursiveLoop {
	if allowed {
		return awslambda.RecursiveLoop_ALLOW
	}
	return awslambda.RecursiveLoop_TERMINATE
}

// retries says how often a failed asynchronous event is tried again; only the
// scheduler and the watchdog get such events.
func retries(name string, n int) *float64 {
	if name != Scheduler && name != Watchdog {
		return nil
	}
	return jsii.Number(n)
}

// seconds is a setting in milliseconds; empty: it is not set.
func seconds(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n * 1000)
}
