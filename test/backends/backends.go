// Package backends runs a test of the durable core over every store that the product
// has.
//
// Guarantees: each run has tables of its own, empty at first and gone at the end, so
// that what looks at all sessions sees only its own; a backend that is not there is a
// skipped subtest with its name, never a silent nothing.
package backends

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"laneway/shared/id"
	"laneway/shared/table"
	"laneway/shared/table/bolt"
	"laneway/shared/table/dynamo"
)

// Each runs f as a parallel subtest over a file of one machine, and over the endpoint
// that AWS_ENDPOINT_URL names.
func Each(t *testing.T, f func(t *testing.T, store table.Store)) {
	t.Helper()
	t.Run("bolt", func(t *testing.T) {
		t.Parallel()
		f(t, Bolt(t))
	})
	t.Run("dynamo", func(t *testing.T) {
		t.Parallel()
		f(t, Dynamo(t))
	})
}

// Bolt is a store over a file that is not synced.
func Bolt(tb testing.TB) table.Store {
	tb.Helper()
	s, err := bolt.Open(bolt.Config{Path: filepath.Join(tb.TempDir(), "tables.db"), NoSync: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// Dynamo is a store over new tables on the endpoint; without one the test is skipped.
func Dynamo(tb testing.TB) table.Store {
	tb.Helper()
	if os.Getenv("AWS_ENDPOINT_URL") == "" {
		tb.Skip("not run: the rules over DynamoDB need AWS_ENDPOINT_URL (make endpoint)")
	}
	// A connection that is kept has goroutines, which would be taken for leaks.
	wire := awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) { tr.DisableKeepAlives = true })
	c, err := config.LoadDefaultConfig(tb.Context(), config.WithHTTPClient(wire))
	if err != nil {
		tb.Fatal(err)
	}
	client, prefix := dynamodb.NewFromConfig(c), "t"+id.UUID()[:8]+"-"
	if err := dynamo.CreateTables(tb.Context(), client, prefix); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		for _, d := range table.Definitions() {
			in := &dynamodb.DeleteTableInput{TableName: aws.String(prefix + d.Name)}
			var gone *types.ResourceNotFoundException // by an earlier try that got no answer
			if _, err := client.DeleteTable(context.WithoutCancel(tb.Context()), in); err != nil && !errors.As(err, &gone) {
				tb.Error(err)
			}
		}
	})
	for _, d := range table.Definitions() {
		keepExpired(tb, client, prefix+d.Name)
	}
	return dynamo.New(client, dynamo.Config{Prefix: prefix})
}

// keepExpired turns off the removal of what has expired: the clocks of tests stand
// somewhere in the past, and an endpoint that removes once a minute would take the rows
// of a test that is under way. One that refuses the change so soon after the table was
// made (AWS) takes hours to remove anything.
func keepExpired(tb testing.TB, client *dynamodb.Client, name string) {
	tb.Helper()
	_, err := client.UpdateTimeToLive(tb.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String(name),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(table.TTLAttr), Enabled: aws.Bool(false)},
	})
	if err != nil {
		tb.Logf("expiry of %s stays on: %v", name, err)
	}
}
