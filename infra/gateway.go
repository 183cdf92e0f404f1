package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2integrations"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Front is the WebSocket API with its one stage, and the gateway function that
// answers its frames.
type Front struct {
	scope    constructs.Construct
	API      awsapigatewayv2.WebSocketApi
	Stage    awsapigatewayv2.CfnStage
	Callback string // https address under which connections are posted to
	URL      string // wss address for clients
	Gateway  Function
}

// NewFront builds API and stage; Answer builds the function and the routes.
func NewFront(scope constructs.Construct, c Config) Front {
	f := Front{scope: constructs.NewConstruct(scope, jsii.String("Gateway"))}
	f.API = awsapigatewayv2.NewWebSocketApi(f.scope, jsii.String("api"), &awsapigatewayv2.WebSocketApiProps{
		ApiName:     jsii.String(c.Name),
		Description: jsii.String("Gateway protocol of " + c.Name),
		// The method of a frame chooses its route, so that one method can be given
		// limits or a function of its own; all others fall to $default.
		RouteSelectionExpression: jsii.String("$request.body.method"),
	})
	f.Stage = awsapigatewayv2.NewCfnStage(f.scope, jsii.String("stage"), &awsapigatewayv2.CfnStageProps{
		ApiId:      f.API.ApiId(),
		StageName:  jsii.String(c.Stage),
		AutoDeploy: jsii.Bool(true),
		// A connection costs an invocation before anybody has shown a token. This
		// bounds what strangers can spend.
		RouteSettings: map[string]any{
			"$connect": map[string]any{
				"ThrottlingRateLimit":  c.ConnectRate,
				"ThrottlingBurstLimit": 2 * c.ConnectRate,
			},
		},
	})
	suppress(f.Stage, "AwsSolutions-APIG1", "Access logs of a WebSocket stage need a role that is set once for all APIs of the account and region, which is not this stack's to change. The gateway function logs a line for every frame.")
	// Not the stage's own address: that would make stage, routes, function and
	// address wait for each other.
	host := *f.API.ApiId() + ".execute-api." + *awscdk.Aws_REGION() + "." + *awscdk.Aws_URL_SUFFIX() + "/" + c.Stage
	f.Callback, f.URL = "https://"+host, "wss://"+host
	return f
}

// Answer adds the function and its three routes. $default is two-way, so that most
// replies cost no post. Each integration has a name of its own; equal ones collide.
func (f *Front) Answer(parts *Parts) {
	f.Gateway = parts.NewFunction(f.scope, Gateway, FunctionProps{})
	for _, route := range []struct {
		key, name string
		reply     bool
	}{
		{"$connect", "connect", false},
		{"$disconnect", "disconnect", false},
		{"$default", "default", parts.Config.TwoWay},
	} {
		r := f.API.AddRoute(jsii.String(route.key), &awsapigatewayv2.WebSocketRouteOptions{
			Integration:    awsapigatewayv2integrations.NewWebSocketLambdaIntegration(jsii.String(route.name), f.Gateway.Function, nil),
			ReturnResponse: jsii.Bool(route.reply),
		})
		suppress(r, "AwsSolutions-APIG4", "The protocol authenticates in its first frame, behind a challenge. A connection that has not shown a token is answered nothing else and is closed.")
		// The stage's settings name a route, which must be there before it.
		f.Stage.Node().AddDependency(r)
	}
}
