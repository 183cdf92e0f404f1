package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// NewWatchdog builds the function that looks for work which nobody is at, and the
// rule that starts it every minute. A failed sweep is not repeated: the next one is
// less than a minute away and sees more.
func NewWatchdog(scope constructs.Construct, parts *Parts) Function {
	w := constructs.NewConstruct(scope, jsii.String("Watchdog"))
	f := parts.NewFunction(w, Watchdog, FunctionProps{MaxAge: awscdk.Duration_Minutes(jsii.Number(1))})
	awsevents.NewRule(w, jsii.String("minute"), &awsevents.RuleProps{
		RuleName:    jsii.String(parts.Config.Name + "-watchdog"),
		Description: jsii.String("Sweeps for sessions with work and nobody at it"),
		Schedule:    awsevents.Schedule_Rate(awscdk.Duration_Minutes(jsii.Number(1))),
		Targets:     &[]awsevents.IRuleTarget{awseventstargets.NewLambdaFunction(f.Function, nil)},
	})
	return f
}
