package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

// suppress takes one finding of the AwsSolutions rules off a construct and what is
// in it. The reason ends up in the template's metadata.
func suppress(c constructs.IConstruct, rule, reason string) {
	cdknag.NagSuppressions_AddResourceSuppressions(c, &[]*cdknag.NagPackSuppression{
		{Id: jsii.String(rule), Reason: jsii.String(reason)},
	}, jsii.Bool(true))
}

// suppressOnEndpoint takes the findings off a stack that only a stand-in for AWS
// may have.
func suppressOnEndpoint(stack awscdk.Stack) {
	for _, rule := range []string{"AwsSolutions-SQS4", "AwsSolutions-S10"} {
		suppress(stack, rule, "The endpoint is on this machine and speaks plain HTTP. A stack on AWS refuses that.")
	}
}
