package dynamo_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
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
	"laneway/shared/table/tabletest"
)

// endpoint gives a store with tables of its own on the endpoint of the environment, or
// skips the test.
func endpoint(t *testing.T) *dynamo.Store {
	t.Helper()
	if os.Getenv("AWS_ENDPOINT_URL") == "" {
		t.Skip("not run: table/dynamo suite needs AWS_ENDPOINT_URL (make endpoint)")
	}
	c, err := config.LoadDefaultConfig(t.Context(), config.WithHTTPClient(awshttp.NewBuildableClient()))
	if err != nil {
		t.Fatal(err)
	}
	client, prefix := dynamodb.NewFromConfig(c), "t"+id.UUID()[:8]+"-"
	if err := dynamo.CreateTables(t.Context(), client, prefix); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, d := range table.Definitions() {
			// The client itself repeats what it got no answer to: then it is gone already.
			var gone *types.ResourceNotFoundException
			_, err := client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: aws.String(prefix + d.Name)})
			if err != nil && !errors.As(err, &gone) {
				t.Error(err)
			}
		}
	})
	if err := dynamo.CreateTables(t.Context(), client, prefix); err != nil {
		t.Fatalf("creating the tables again: %v", err)
	}
	return dynamo.New(client, dynamo.Config{Prefix: prefix})
}

func TestSuite(t *testing.T) {
	t.Parallel()
	s := endpoint(t)
	tabletest.Run(t, func(*testing.T) table.Store { return s })
}

// TestComparedWithTheReference is more random steps than the suite has.
func TestComparedWithTheReference(t *testing.T) {
	t.Parallel()
	s := endpoint(t)
	for i := range 4 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			tabletest.Compare(t, tabletest.NewModel(), s)
		})
	}
}

// TestComparedWithBolt holds the two adapters against each other.
func TestComparedWithBolt(t *testing.T) {
	t.Parallel()
	s := endpoint(t)
	b, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "tables.db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	tabletest.Compare(t, b, s)
}
