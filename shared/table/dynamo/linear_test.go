package dynamo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"laneway/shared/id"
	"laneway/shared/table"
	"laneway/shared/table/dynamo"
	"laneway/shared/table/lineartest"
)

// cutWire loses the answers to some writes, which were made.
type cutWire struct {
	wire aws.HTTPClient
	n    atomic.Int64
	lost atomic.Int64
}

func (c *cutWire) Do(r *http.Request) (*http.Response, error) {
	res, err := c.wire.Do(r)
	target := r.Header.Get("X-Amz-Target")
	write := strings.HasSuffix(target, ".PutItem") || strings.HasSuffix(target, ".UpdateItem") || strings.HasSuffix(target, ".TransactWriteItems")
	if err != nil || !write || c.n.Add(1)%7 != 0 {
		return res, err
	}
	c.lost.Add(1)
	return nil, errors.Join(fmt.Errorf("the connection broke: %w", io.ErrUnexpectedEOF), res.Body.Close())
}

// TestLinearizable_AnswersLostOnTheWire: what the adapter itself makes of a broken
// connection, sending again or saying that it does not know, fits into an order.
func TestLinearizable_AnswersLostOnTheWire(t *testing.T) {
	t.Parallel()
	if os.Getenv("AWS_ENDPOINT_URL") == "" {
		t.Skip("not run: table/dynamo suite needs AWS_ENDPOINT_URL (make endpoint)")
	}
	c, err := config.LoadDefaultConfig(t.Context(), config.WithHTTPClient(awshttp.NewBuildableClient()))
	if err != nil {
		t.Fatal(err)
	}
	wire := &cutWire{wire: c.HTTPClient}
	client := dynamodb.NewFromConfig(c, func(o *dynamodb.Options) { o.HTTPClient = wire })
	prefix := "t" + id.UUID()[:8] + "-"
	if err := dynamo.CreateTables(t.Context(), client, prefix); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, d := range table.Definitions() {
			var gone *types.ResourceNotFoundException // by an earlier try that got no answer
			_, err := client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: aws.String(prefix + d.Name)})
			if err != nil && !errors.As(err, &gone) {
				t.Error(err)
			}
		}
		if wire.lost.Load() == 0 {
			t.Error("no answer was lost: the test says nothing")
		}
	})
	lineartest.Check(t, dynamo.New(client, dynamo.Config{Prefix: prefix}))
}
