// Package dynamo keeps tables in Amazon DynamoDB.
//
// It promises what package table promises, and:
//
//   - Get and Query read with strong consistency. Index does not.
//   - One op is one PutItem, UpdateItem or DeleteItem; several ops, and a Check, are
//     one TransactWriteItems.
//   - A write whose answer was lost (connection cut, timeout, HTTP 5xx) is sent again
//     a few times within the context, unchanged and with the same client token, and
//     then answered with ErrUnknown. Only where that could add twice, in an Update
//     with Add as the only op, it is answered at once: the caller's condition decides
//     whether it may be repeated. A condition that fails after a lost answer says so
//     (ConditionError.Ambiguous).
//   - Nothing else is repeated: ErrConflict and ErrThrottled are the caller's.
//   - A context that ends while an answer is awaited gives ErrUnknown and the
//     context's error.
//   - A last page may be empty, because DynamoDB does not look whether anything
//     follows.
//
// Setting a member of a map that is absent is no single operation of DynamoDB: see
// shape. Requests and consumed units are counted in the context's meter.
package dynamo

import (
	"cmp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"laneway/shared/clock"
	"laneway/shared/id"
	"laneway/shared/table"
)

// Config says how tables are named and how patient a Write is. Its zero value works.
type Config struct {
	// Prefix of all table names: the table "runs" is Prefix + "runs".
	Prefix string
	// TryTimeout is how long one request of a Write may take before its answer counts
	// as lost; 0: 5 s.
	TryTimeout time.Duration
	// Tries is how often a write is sent in all while its answers get lost; 0: 4.
	Tries int
	// Token makes client tokens; nil: id.UUID.
	Token id.Source
	// Clock waits between tries; nil: clock.System.
	Clock clock.Clock
}

// Store is a table.Store in DynamoDB.
type Store struct {
	client *dynamodb.Client
	c      Config
}

// New is a Store over a client, whose region, credentials and endpoint it uses. It
// turns the client's retries off for writes.
func New(client *dynamodb.Client, c Config) *Store {
	c.TryTimeout = cmp.Or(c.TryTimeout, 5*time.Second)
	c.Tries = cmp.Or(c.Tries, 4)
	if c.Token == nil {
		c.Token = id.UUID
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	client = dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.HTTPClient = detached{o.HTTPClient} })
	return &Store{client: client, c: c}
}

var _ table.Store = (*Store)(nil)

func (s *Store) name(tableName string) *string { return aws.String(s.c.Prefix + tableName) }

// Attributes of the key, in every table.
const (
	pkAttr = "pk"
	skAttr = "sk"
)

func keyOf(k table.Key) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{pkAttr: text(k.PK), skAttr: text(k.SK)}
}

func text(s string) *types.AttributeValueMemberS { return &types.AttributeValueMemberS{Value: s} }

// once turns the client's own retries off: they would hide a lost answer.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }
