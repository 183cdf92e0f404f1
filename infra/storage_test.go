package main

import (
	"testing"

	"laneway/shared/table"
)

func TestTablesAreThoseOfTheSchema(t *testing.T) {
	t.Parallel()
	tpl := synth(t)
	if n := len(tpl.of("AWS::DynamoDB::Table")); n != len(table.Definitions()) {
		t.Errorf("%d tables are deployed, the schema has %d", n, len(table.Definitions()))
	}
	for _, d := range table.Definitions() {
		tpl.has(t, "AWS::DynamoDB::Table", map[string]any{
			"TableName": "laneway-" + d.Name,
			"KeySchema": []any{
				map[string]any{"AttributeName": "pk", "KeyType": "HASH"},
				map[string]any{"AttributeName": "sk", "KeyType": "RANGE"},
			},
			"BillingMode":                      "PAY_PER_REQUEST",
			"TimeToLiveSpecification":          map[string]any{"AttributeName": "expiresAt", "Enabled": true},
			"PointInTimeRecoverySpecification": map[string]any{"PointInTimeRecoveryEnabled": true},
		})
		_, r := tpl.named(t, "AWS::DynamoDB::Table", "TableName", "laneway-"+d.Name)
		if stream, ok := r.Properties["StreamSpecification"]; ok {
			t.Errorf("%s has the stream %v, which nobody reads", d.Name, stream)
		}
		indexes, _ := r.Properties["GlobalSecondaryIndexes"].([]any)
		if len(indexes) != len(d.Indexes) {
			t.Errorf("%s has %d indexes, the schema %d", d.Name, len(indexes), len(d.Indexes))
		}
	}
}

// A projection can't be changed in place, and anything more than the keys is paid
// for with every write.
func TestIndexesHoldKeysOnly(t *testing.T) {
	t.Parallel()
	tpl := synth(t)
	for _, d := range table.Definitions() {
		for _, i := range d.Indexes {
			_, r := tpl.named(t, "AWS::DynamoDB::Table", "TableName", "laneway-"+d.Name)
			var found bool
			for _, raw := range r.Properties["GlobalSecondaryIndexes"].([]any) {
				index := raw.(map[string]any)
				if index["IndexName"] != i.Name {
					continue
				}
				found = true
				keys := index["KeySchema"].([]any)
				if keys[0].(map[string]any)["AttributeName"] != i.PK || keys[1].(map[string]any)["AttributeName"] != i.SK {
					t.Errorf("%s has the keys %v", i.Name, keys)
				}
				if p := index["Projection"].(map[string]any)["ProjectionType"]; p != "KEYS_ONLY" {
					t.Errorf("%s holds %v", i.Name, p)
				}
			}
			if !found {
				t.Errorf("%s has no index %s", d.Name, i.Name)
			}
		}
	}
}

func TestDataOutlivesTheStackUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	for policy, tpl := range map[string]*template{
		"Retain": synth(t),
		"Delete": synth(t, "laneway.removal", "destroy"),
	} {
		for _, kind := range []string{"AWS::DynamoDB::Table", "AWS::S3::Bucket"} {
			for id, r := range tpl.of(kind) {
				if r.DeletionPolicy != policy || r.UpdateReplacePolicy != policy {
					t.Errorf("%s: deletion %s, replacement %s; want %s", id, r.DeletionPolicy, r.UpdateReplacePolicy, policy)
				}
				if guarded := r.Properties["DeletionProtectionEnabled"]; kind == "AWS::DynamoDB::Table" && guarded != (policy == "Retain") {
					t.Errorf("%s: deletion protection is %v under %s", id, guarded, policy)
				}
			}
		}
	}
}

// What is kept is taken over by the next stack of the name only if its name stands
// in the template as it is; one that CloudFormation makes up, or puts together, would
// collide or be lost.
func TestDataHasFixedNames(t *testing.T) {
	t.Parallel()
	c := defaults()
	c.Assets, c.Name, c.Account, c.Region = assets, "other", "123456789012", "eu-central-1"
	tpl, err := synthesize(c)
	if err != nil {
		t.Fatal(err)
	}
	tpl.has(t, "AWS::DynamoDB::Table", map[string]any{"TableName": "other-sessions"})
	for _, r := range tpl.of("AWS::S3::Bucket") {
		if got := r.Properties["BucketName"]; got != "other-123456789012-eu-central-1-blobs" {
			t.Errorf("the bucket is named %v", got)
		}
	}
}

func TestTheBucketIsPrivateAndEncrypted(t *testing.T) {
	t.Parallel()
	synth(t).has(t, "AWS::S3::Bucket", map[string]any{
		"PublicAccessBlockConfiguration": map[string]any{
			"BlockPublicAcls": true, "BlockPublicPolicy": true, "IgnorePublicAcls": true, "RestrictPublicBuckets": true,
		},
		"BucketEncryption": map[string]any{"ServerSideEncryptionConfiguration": []any{
			map[string]any{"ServerSideEncryptionByDefault": map[string]any{"SSEAlgorithm": "AES256"}},
		}},
	})
}

// Only what a client put and never named may expire: a rule without this prefix
// would eat transcripts.
func TestOnlyUploadsExpire(t *testing.T) {
	t.Parallel()
	for _, r := range synth(t).of("AWS::S3::Bucket") {
		for _, raw := range r.Properties["LifecycleConfiguration"].(map[string]any)["Rules"].([]any) {
			rule := raw.(map[string]any)
			if _, expires := rule["ExpirationInDays"]; expires && rule["Prefix"] != "uploads/" {
				t.Errorf("the rule %v expires more than uploads", rule)
			}
		}
	}
}
