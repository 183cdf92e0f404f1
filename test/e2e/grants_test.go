package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"laneway/shared/client"
	"laneway/shared/id"
	"laneway/shared/protocol"
)

// smokeWithin is how long one turn may take. Without a grant it does not end.
const smokeWithin = 8 * time.Second

// smoke is the least that a deployment must do: a client connects and is answered.
func (g gateway) smoke(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), smokeWithin)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{URL: g.URL, Token: g.Token})
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer c.Close()
	run := id.UUID()
	raw, err := c.CallFinal(ctx, "agent", protocol.AgentParams{Message: "smoke", SessionKey: "agent:main:" + run, IdempotencyKey: run}, nil)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	var f protocol.Final
	if err := json.Unmarshal(raw, &f); err != nil || reply(f) != "You said: smoke" {
		return fmt.Errorf("answered %s", raw)
	}
	return nil
}

// grants takes single grants off the functions' roles: each must be missed. That a
// turn works with all of them and not without one proves that roles are judged here,
// and so that the turns above had all the rights that they need and not root's.
func grants(t *testing.T, s *stack) {
	if err := s.smoke(t); err != nil {
		t.Fatalf("with all grants: %v", err)
	}
	for _, c := range []struct{ function, action, resource string }{
		{"gateway", "dynamodb:PutItem", "-runs"},
		{"gateway", "dynamodb:GetItem", "-config"},
		{"notifier", "execute-api:ManageConnections", "POST"},
		{"runner", "dynamodb:UpdateItem", "-sessions"},
	} {
		t.Run(fmt.Sprintf("%s without %s on %s", c.function, c.action, c.resource), func(t *testing.T) {
			restore := s.revoke(t, c.function, c.action, c.resource)
			err := s.smoke(t)
			restore()
			if err == nil {
				lacksf(t, "the endpoint does not judge the roles of functions: a turn worked without %s", c.action)
			}
			t.Logf("missed: %v", err)
			if err := s.smoke(t); err != nil {
				t.Errorf("with the grant again: %v", err)
			}
		})
	}
}

// document is an IAM policy, of which only the statements are looked into.
type document struct {
	Version   string      `json:"Version"`
	Statement []statement `json:"Statement"`
}

type statement struct {
	Effect    string          `json:"Effect"`
	Action    oneOrMany       `json:"Action"`
	Resource  oneOrMany       `json:"Resource"`
	Condition json.RawMessage `json:"Condition,omitempty"`
}

// oneOrMany is a string or a list of them.
type oneOrMany []string

// UnmarshalJSON implements json.Unmarshaler.
func (o *oneOrMany) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*o = oneOrMany{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(o))
}

// revoke takes an action on the resources whose ARN has a part out of the inline
// policies of a function's role. restore puts them back as they were.
func (s *stack) revoke(t *testing.T, function, action, resource string) (restore func()) {
	t.Helper()
	ctx := t.Context()
	config, err := lambda.NewFromConfig(s.aws).GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: aws.String(s.name + "-" + function)})
	if err != nil {
		t.Fatal(err)
	}
	roles, role := iam.NewFromConfig(s.aws), aws.ToString(config.Role)
	role = role[strings.LastIndexByte(role, '/')+1:]
	list, err := roles.ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: &role})
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		// Also after a test that failed or was stopped: the stack is used on.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if _, err := roles.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: &role, PolicyName: &name, PolicyDocument: &text}); err != nil {
			t.Errorf("policy %s: %v", name, err)
		}
	}
	before := map[string]string{}
	for _, name := range list.PolicyNames {
		got, err := roles.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: &role, PolicyName: &name})
		if err != nil {
			t.Fatal(err)
		}
		text, err := url.QueryUnescape(aws.ToString(got.PolicyDocument))
		if err != nil {
			t.Fatal(err)
		}
		var d document
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		if less, changed := d.without(action, resource); changed {
			before[name] = text
			put(name, less)
		}
	}
	if len(before) == 0 {
		t.Fatalf("%s has no grant of %s on %s", function, action, resource)
	}
	return func() {
		for name, text := range before {
			put(name, text)
		}
	}
}

// without is the document without an action on some resources.
func (d document) without(action, resource string) (text string, changed bool) {
	out := document{Version: d.Version}
	for _, st := range d.Statement {
		var kept, cut oneOrMany
		for _, r := range st.Resource {
			if strings.Contains(r, resource) {
				cut = append(cut, r)
			} else {
				kept = append(kept, r)
			}
		}
		var others oneOrMany
		for _, a := range st.Action {
			if a != action {
				others = append(others, a)
			}
		}
		if len(cut) == 0 || len(others) == len(st.Action) {
			out.Statement = append(out.Statement, st)
			continue
		}
		changed = true
		if len(kept) > 0 {
			out.Statement = append(out.Statement, statement{st.Effect, st.Action, kept, st.Condition})
		}
		if len(others) > 0 {
			out.Statement = append(out.Statement, statement{st.Effect, others, cut, st.Condition})
		}
	}
	b, err := json.Marshal(out)
	return string(b), changed && err == nil
}
