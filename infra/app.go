package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

// flags are the behaviours of CDK that differ from the defaults it keeps for old
// apps. They stand here and not in cdk.json, so that tests see what is deployed.
func flags() map[string]any {
	return map[string]any{
		"@aws-cdk/core:checkSecretUsage":                 true, // a secret in a plain property is an error
		"@aws-cdk/aws-iam:minimizePolicies":              true, // equal statements are joined
		"@aws-cdk/core:enablePartitionLiterals":          true,
		"@aws-cdk/core:target-partitions":                []string{"aws"},
		"@aws-cdk/core:validateSnapshotRemovalPolicy":    true,
		"@aws-cdk/aws-lambda:recognizeVersionProps":      true,
		"@aws-cdk/aws-lambda:recognizeLayerVersion":      true,
		"@aws-cdk/aws-iam:standardizedServicePrincipals": true,
	}
}

// NewApp is an app whose every construct is judged by the AwsSolutions rules: a
// finding that is not suppressed fails the synthesis. Outdir empty: where the CDK
// command line wants it.
func NewApp(outdir string) awscdk.App {
	context := flags()
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: known(outdir), Context: &context})
	awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{Verbose: jsii.Bool(true)}), nil)
	return app
}
