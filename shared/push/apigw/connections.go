package apigw

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go/encoding/httpbinding"

	"laneway/shared/clock"
)

const (
	// service is the name that signatures of @connections are made for.
	service = "execute-api"
	// maxAnswer bounds what is read of an answer; there is little of use in one.
	maxAnswer = 64 << 10
)

// connections makes the three signed calls of @connections. It stands for the
// client of the SDK's package apigatewaymanagementapi (PostToConnection,
// GetConnection, DeleteConnection) and knows nothing of the port, so that the
// package can take its place.
type connections struct {
	http   *http.Client
	signer *v4.Signer
	creds  aws.CredentialsProvider
	region string
	clock  clock.Clock
}

// statusError is an answer other than 2xx.
type statusError struct{ status int }

// Error names the status alone: the body is not for logs.
func (e *statusError) Error() string { return fmt.Sprintf("@connections answered %d", e.status) }

// postToConnection sends data to a connection.
func (c *connections) postToConnection(ctx context.Context, base *url.URL, id string, data []byte) error {
	_, err := c.call(ctx, http.MethodPost, base, id, data)
	return err
}

// deleteConnection ends a connection.
func (c *connections) deleteConnection(ctx context.Context, base *url.URL, id string) error {
	_, err := c.call(ctx, http.MethodDelete, base, id, nil)
	return err
}

// getConnection gives what is known of a connection, in JSON.
func (c *connections) getConnection(ctx context.Context, base *url.URL, id string) ([]byte, error) {
	return c.call(ctx, http.MethodGet, base, id, nil)
}

func (c *connections) call(ctx context.Context, method string, base *url.URL, id string, data []byte) ([]byte, error) {
	// Ids may hold "=", "+" and "/". They are escaped as the SDK does it, in the
	// request as well as in what is signed.
	u := *base
	u.Path = base.Path + "/@connections/" + id
	u.RawPath = base.EscapedPath() + "/@connections/" + httpbinding.EscapePath(id, true)
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/octet-stream")
	}
	creds, err := c.creds.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	hash := sha256.Sum256(data)
	if err := c.signer.SignHTTP(ctx, creds, req, hex.EncodeToString(hash[:]), service, c.region, c.clock.Now()); err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	// Read to its end, or the connection could not be used again.
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, &statusError{resp.StatusCode}
	}
	if err != nil && method == http.MethodGet {
		return nil, err
	}
	// The status says that it is done, whatever became of the rest.
	return answer, nil
}
