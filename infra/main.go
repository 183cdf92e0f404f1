// Command infra is the CDK app of Laneway: it turns a small checked configuration,
// the context of cdk.json, into one CloudFormation stack.
//
// The tables, their indexes and the queues are built from the definitions beside
// the ports, so what is deployed is what the code expects. Every template that it
// makes has passed the AwsSolutions rules of cdk-nag; a finding that is not
// suppressed with its reason fails the synthesis.
package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/aws/jsii-runtime-go"
)

func main() {
	err := run()
	jsii.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "infra:", err)
		os.Exit(1)
	}
}

// run synthesizes the stack.
func run() error {
	app := NewApp("")
	context, _ := app.Node().GetAllContext(nil).(map[string]any)
	config, err := ParseConfig(context)
	if err != nil {
		return err
	}
	// The CDK command line says whose credentials it has.
	config.Account = os.Getenv("CDK_DEFAULT_ACCOUNT")
	config.Region = cmp.Or(config.Region, os.Getenv("CDK_DEFAULT_REGION"))
	if err := checkAssets(&config); err != nil {
		return err
	}
	NewStack(app, config)
	app.Synth(nil)
	return nil
}
