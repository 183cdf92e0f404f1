package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Secrets is one secret: a JSON object whose members are the providers' keys, under
// the names of the environment variables of the single-machine edition, such as
// ANTHROPIC_API_KEY. It is deployed empty, because what stands in a template stands
// in many places; the operator fills it in. It goes with the stack.
type Secrets struct {
	scope constructs.Construct
	ARN   string
}

// NewSecrets builds it. It has no fixed name: a deleted secret holds its name for
// up to 30 days, and a new stack must not have to wait for that.
func NewSecrets(scope constructs.Construct, c Config) Secrets {
	s := Secrets{scope: constructs.NewConstruct(scope, jsii.String("Secrets"))}
	keys := awssecretsmanager.NewSecret(s.scope, jsii.String("keys"), &awssecretsmanager.SecretProps{
		Description:       jsii.String("Model providers' keys of " + c.Name + ", a JSON object"),
		SecretStringValue: awscdk.SecretValue_UnsafePlainText(jsii.String("{}")),
		RemovalPolicy:     awscdk.RemovalPolicy_DESTROY,
	})
	suppress(keys, "AwsSolutions-SMG4", "The keys are issued by model providers, none of which offers a rotation that a function could carry out. A new value is read by every process that starts after it.")
	s.ARN = *keys.SecretArn()
	if raw, ok := keys.Node().DefaultChild().(awssecretsmanager.CfnSecret); ok {
		s.ARN = *raw.AttrId() // the same on AWS; MiniStack gives a name for the other
	}
	return s
}
