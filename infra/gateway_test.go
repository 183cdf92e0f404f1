package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestFramesAreRoutedByTheirMethod(t *testing.T) {
	t.Parallel()
	synth(t).has(t, "AWS::ApiGatewayV2::Api", map[string]any{
		"ProtocolType": "WEBSOCKET", "RouteSelectionExpression": "$request.body.method",
	})
}

// Two routes on one integration would work until one of them is changed.
func TestEachRouteHasAnIntegrationOfItsOwn(t *testing.T) {
	t.Parallel()
	tpl := synth(t)
	targets := map[string]string{}
	for _, key := range []string{"$connect", "$disconnect", "$default"} {
		_, r := tpl.named(t, "AWS::ApiGatewayV2::Route", "RouteKey", key)
		target := render(r.Properties["Target"])
		if other, taken := targets[target]; taken {
			t.Errorf("%s and %s share %s", key, other, target)
		}
		targets[target] = key
	}
	if n := len(tpl.of("AWS::ApiGatewayV2::Route")); n != len(targets) {
		t.Errorf("there are %d routes", n)
	}
}

// Without the route response API Gateway throws the function's answer away, and
// every reply would need a post.
func TestOnlyTheDefaultRouteAnswers(t *testing.T) {
	t.Parallel()
	tpl := synth(t)
	id, r := tpl.named(t, "AWS::ApiGatewayV2::Route", "RouteKey", "$default")
	if r.Properties["RouteResponseSelectionExpression"] != "$default" {
		t.Errorf("$default is %v", r.Properties)
	}
	responses := tpl.of("AWS::ApiGatewayV2::RouteResponse")
	for _, response := range responses {
		if render(response.Properties["RouteId"]) != "<"+id+">" {
			t.Errorf("%v is not for $default", response.Properties)
		}
	}
	if len(responses) != 1 {
		t.Errorf("there are %d route responses", len(responses))
	}
	if n := len(synth(t, "laneway.two.way", "false").of("AWS::ApiGatewayV2::RouteResponse")); n != 0 {
		t.Errorf("there are %d where none was wanted", n)
	}
}

func TestConnectingIsThrottled(t *testing.T) {
	t.Parallel()
	tpl := synth(t, "laneway.connect.rate", "7")
	tpl.has(t, "AWS::ApiGatewayV2::Stage", map[string]any{
		"StageName": "live", "AutoDeploy": true,
		"RouteSettings": map[string]any{"$connect": map[string]any{"ThrottlingRateLimit": 7, "ThrottlingBurstLimit": 14}},
	})
	// The settings name a route: a stage that is made before it fails.
	id, _ := tpl.named(t, "AWS::ApiGatewayV2::Route", "RouteKey", "$connect")
	_, stage := tpl.named(t, "AWS::ApiGatewayV2::Stage", "StageName", "live")
	if !strings.Contains(fmt.Sprint(stage.DependsOn), id) {
		t.Errorf("the stage waits for %v only", stage.DependsOn)
	}
}

func TestClientsAndFunctionsAreGivenTheStage(t *testing.T) {
	t.Parallel()
	tpl := synth(t, "laneway.stage", "blue")
	api, _ := tpl.named(t, "AWS::ApiGatewayV2::Api", "ProtocolType", "WEBSOCKET")
	host := "://<" + api + ">.execute-api.<AWS::Region>.<AWS::URLSuffix>/blue"
	if got := render(tpl.Outputs["Url"].Value); got != "wss"+host {
		t.Errorf("clients are given %s", got)
	}
	if got := render(environmentOf(t, tpl, Runner)[EnvStageCallback]); got != "https"+host {
		t.Errorf("functions are given %s", got)
	}
}
