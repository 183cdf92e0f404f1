package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// NewStack puts the parts together.
//
// The order is that of what refers to what: data, queues and the address first,
// then the functions that are told of them.
func NewStack(scope constructs.Construct, c Config) awscdk.Stack {
	props := awscdk.StackProps{
		StackName:   jsii.String(c.Name),
		Description: jsii.String("OpenClaw's agent loop on serverless AWS"),
		Tags:        &map[string]*string{"laneway": jsii.String(c.Name)},
	}
	// With account and region written out, the bucket's name is a literal, and only a
	// resource with a literal name is taken over by a new stack.
	props.Env = &awscdk.Environment{Account: known(c.Account), Region: known(c.Region)}
	if c.Emulator {
		// The roles of a bootstrap can't be taken on an endpoint that judges them
		// by rules of its own; the caller's keys do.
		props.Synthesizer = awscdk.NewCliCredentialsStackSynthesizer(nil)
	}
	stack := awscdk.NewStack(scope, jsii.String("Laneway"), &props)
	parts := &Parts{
		Config:   c,
		Storage:  NewStorage(stack, c),
		Lanes:    NewLanes(stack, c),
		Timers:   NewTimers(stack, c),
		Front:    NewFront(stack, c),
		Secrets:  NewSecrets(stack, c),
		Schedule: NewSchedule(stack, c),
	}
	parts.Front.Answer(parts)
	runner := NewRunner(stack, parts)
	parts.Timers.Fire(parts)
	parts.Schedule.Listen(parts)
	watchdog := NewWatchdog(stack, parts)
	NewObservability(stack, parts, runner, watchdog)
	if c.Emulator {
		suppressOnEndpoint(stack)
	}
	for name, value := range map[string]*string{
		"Url":         jsii.String(parts.Front.URL),
		"ApiId":       parts.Front.API.ApiId(),
		"Stage":       jsii.String(c.Stage),
		"TablePrefix": jsii.String(parts.Storage.Prefix),
		"BlobBucket":  parts.Storage.Bucket.BucketName(),
		"SecretArn":   jsii.String(parts.Secrets.ARN),
	} {
		awscdk.NewCfnOutput(stack, jsii.String(name), &awscdk.CfnOutputProps{Value: value})
	}
	return stack
}

// known is nil for what is not known before the deployment.
func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
