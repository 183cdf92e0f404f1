package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// rights lists what each function may do, as "action resource".
func rights(t *testing.T, tpl *template) map[string][]string {
	t.Helper()
	owner := map[string]string{} // role to function
	for _, f := range tpl.of("AWS::Lambda::Function") {
		owner[render(f.Properties["Role"])] = strings.TrimPrefix(f.Properties["FunctionName"].(string), "laneway-")
	}
	out := map[string][]string{}
	for _, p := range tpl.of("AWS::IAM::Policy") {
		for _, raw := range p.Properties["PolicyDocument"].(map[string]any)["Statement"].([]any) {
			s := raw.(map[string]any)
			if s["Effect"] != "Allow" {
				t.Errorf("%v does not allow", s)
			}
			for _, role := range texts(p.Properties["Roles"]) {
				name, ok := owner[strings.TrimSuffix(role, ">")+".Arn>"]
				if !ok {
					name = role
				}
				for _, action := range texts(s["Action"]) {
					for _, resource := range texts(s["Resource"]) {
						out[name] = append(out[name], action+" "+resource)
					}
				}
			}
		}
	}
	return out
}

func TestNoActionIsAWildcard(t *testing.T) {
	t.Parallel()
	for name, all := range rights(t, synth(t)) {
		for _, right := range all {
			if action, _, _ := strings.Cut(right, " "); strings.Contains(action, "*") {
				t.Errorf("%s may %s", name, right)
			}
		}
	}
}

// A star stands only where nothing has a name when the stack is deployed.
func TestWildcardResourcesAreTheseOnly(t *testing.T) {
	t.Parallel()
	tpl := synth(t)
	api, _ := tpl.named(t, "AWS::ApiGatewayV2::Api", "ProtocolType", "WEBSOCKET")
	bucket := slices.Collect(maps.Keys(tpl.of("AWS::S3::Bucket")))[0]
	allowed := []string{
		"<" + bucket + ".Arn>/*",
		"arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:<" + api + ">/live/POST/@connections/*",
		"arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:<" + api + ">/live/DELETE/@connections/*",
		"arn:<AWS::Partition>:scheduler:<AWS::Region>:<AWS::AccountId>:schedule/laneway/*",
	}
	for name, all := range rights(t, tpl) {
		for _, right := range all {
			_, resource, _ := strings.Cut(right, " ")
			resource = strings.ReplaceAll(resource, "arn:aws:", "arn:<AWS::Partition>:")
			if strings.Contains(resource, "*") && !slices.Contains(allowed, resource) {
				t.Errorf("%s may %s", name, right)
			}
		}
	}
}

// Managed policies grant by a list that somebody else keeps.
func TestNoRoleTakesAManagedPolicy(t *testing.T) {
	t.Parallel()
	for id, r := range synth(t).of("AWS::IAM::Role") {
		if p := r.Properties["ManagedPolicyArns"]; p != nil {
			t.Errorf("%s has %v", id, p)
		}
	}
}

func TestEachFunctionMayDoWhatItIsForAndNoMore(t *testing.T) {
	t.Parallel()
	tpl := synth(t)
	services := map[string][]string{}
	for name, all := range rights(t, tpl) {
		for _, right := range all {
			action, resource, _ := strings.Cut(right, " ")
			if strings.HasPrefix(action, "dynamodb:") {
				action += " " + tableOf(t, tpl, resource)
			}
			services[name] = append(services[name], action)
		}
	}
	for _, row := range []struct {
		function, action string
		may              bool
	}{
		{Runner, "secretsmanager:GetSecretValue", true},
		{Gateway, "secretsmanager:GetSecretValue", false},
		{Notifier, "secretsmanager:GetSecretValue", false},
		{Scheduler, "secretsmanager:GetSecretValue", false},
		{Watchdog, "secretsmanager:GetSecretValue", false},
		{Gateway, "execute-api:ManageConnections", true},
		{Runner, "execute-api:ManageConnections", true},
		{Notifier, "execute-api:ManageConnections", true},
		{Scheduler, "execute-api:ManageConnections", false},
		{Watchdog, "execute-api:ManageConnections", false},
		{Gateway, "scheduler:CreateSchedule", true},
		{Gateway, "iam:PassRole", true},
		{Notifier, "iam:PassRole", false},
		{Watchdog, "iam:PassRole", true}, // of the schedules' role, to that service alone
		{Watchdog, "dynamodb:PutItem jobs", true},
		{Gateway, "dynamodb:GetItem config", true},
		{Gateway, "dynamodb:PutItem config", false}, // else a frame could make a token
		{Runner, "dynamodb:PutItem config", true},
		{Runner, "dynamodb:ConditionCheckItem sessions", true},
		{Runner, "dynamodb:UpdateItem sessions", true},
		{Watchdog, "dynamodb:PutItem connections", false},
		{Watchdog, "dynamodb:Query sessions/index/active", true},
		{Watchdog, "dynamodb:Query sessions/index/recent", false},
		{Runner, "sqs:ReceiveMessage", true},
		{Gateway, "sqs:ReceiveMessage", false},
		{Scheduler, "sqs:SendMessage", true},
		{Watchdog, "sqs:SendMessage", true},
		{Gateway, "s3:PutObject", true},
		{Watchdog, "s3:GetObject", false},
		{Runner, "lambda:InvokeFunction", false},
		{Runner, "dynamodb:Scan sessions", false},
		{Runner, "bedrock:InvokeModelWithResponseStream", false}, // no model of Bedrock is configured
	} {
		if got := slices.Contains(services[row.function], row.action); got != row.may {
			t.Errorf("%s may %s: %v, want %v", row.function, row.action, got, row.may)
		}
	}
}

func TestAModelOfBedrockIsGrantedByName(t *testing.T) {
	t.Parallel()
	for model, want := range map[string][]string{
		"bedrock/amazon.nova-x-v1:0": {
			"bedrock:InvokeModel arn:aws:bedrock:<AWS::Region>::foundation-model/amazon.nova-x-v1:0",
		},
		"bedrock/eu.anthropic.claude-x-v1:0": {
			"bedrock:InvokeModel arn:aws:bedrock:<AWS::Region>:<AWS::AccountId>:inference-profile/eu.anthropic.claude-x-v1:0",
			"bedrock:InvokeModel arn:aws:bedrock:*::foundation-model/anthropic.claude-x-v1:0",
		},
	} {
		var got []string
		for _, right := range rights(t, synth(t, "laneway.model", model))[Runner] {
			if strings.HasPrefix(right, "bedrock:InvokeModel ") {
				got = append(got, strings.ReplaceAll(right, "<AWS::Partition>", "aws"))
			}
		}
		if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: got %v", model, got)
		}
	}
}

// TestFallbacksOfBedrockAreGrantedToo: beside the model.
func TestFallbacksOfBedrockAreGrantedToo(t *testing.T) {
	t.Parallel()
	all := strings.Join(rights(t, synth(t, "laneway.model", "openai/a", "laneway.fallbacks", "bedrock/amazon.nova-x-v1:0, bedrock/amazon.nova-y-v1:0"))[Runner], "\n")
	for _, id := range []string{"amazon.nova-x-v1:0", "amazon.nova-y-v1:0"} {
		if !strings.Contains(all, "::foundation-model/"+id) {
			t.Errorf("%s is not granted", id)
		}
	}
}

// The role of the schedules is worth something to whoever can take or pass it.
func TestTheRoleOfSchedulesIsForSchedulesOfThisStack(t *testing.T) {
	t.Parallel()
	tpl := synth(t)
	var found bool
	for _, r := range tpl.of("AWS::IAM::Role") {
		trust := render(r.Properties["AssumeRolePolicyDocument"])
		if !strings.Contains(trust, "scheduler.amazonaws.com") {
			continue
		}
		found = true
		if !strings.Contains(trust, "aws:SourceAccount") || !strings.Contains(trust, "schedule-group/laneway") {
			t.Errorf("it can be taken by %s", trust)
		}
	}
	if !found {
		t.Error("there is no such role")
	}
	passes := 0
	for _, p := range tpl.of("AWS::IAM::Policy") {
		for _, raw := range p.Properties["PolicyDocument"].(map[string]any)["Statement"].([]any) {
			s := raw.(map[string]any)
			if s["Action"] == "iam:PassRole" {
				passes++
				if got := render(s["Condition"]); !strings.Contains(got, "iam:PassedToService:scheduler.amazonaws.com") {
					t.Errorf("it may be passed on: %s", got)
				}
			}
		}
	}
	if passes != 4 { // gateway, runner, scheduler, watchdog
		t.Errorf("%d functions may pass it", passes)
	}
}

// tableOf names the table or index behind an ARN.
func tableOf(t *testing.T, tpl *template, resource string) string {
	t.Helper()
	for id, r := range tpl.of("AWS::DynamoDB::Table") {
		if rest, ok := strings.CutPrefix(resource, "<"+id+".Arn>"); ok {
			return strings.TrimPrefix(r.Properties["TableName"].(string), "laneway-") + rest
		}
	}
	t.Errorf("%s is no table of the stack", resource)
	return resource
}
