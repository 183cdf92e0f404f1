package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"laneway/shared/table"
)

// CreateTables makes the tables of table.Definitions that are not there yet and waits
// until they can be used. It is for endpoints that no stack is deployed to.
func CreateTables(ctx context.Context, client *dynamodb.Client, prefix string) error {
	for _, d := range table.Definitions() {
		_, err := client.CreateTable(ctx, createInput(d, prefix))
		var there *types.ResourceInUseException
		if err != nil && !errors.As(err, &there) {
			return fmt.Errorf("dynamo: create table %s: %w", d.Name, err)
		}
	}
	wait := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 20*time.Millisecond, time.Second
	})
	for _, d := range table.Definitions() {
		name := aws.String(prefix + d.Name)
		if err := wait.Wait(ctx, &dynamodb.DescribeTableInput{TableName: name}, 2*time.Minute); err != nil {
			return fmt.Errorf("dynamo: wait for table %s: %w", d.Name, err)
		}
		if err := enableTTL(ctx, client, name); err != nil {
			return fmt.Errorf("dynamo: expiry of table %s: %w", d.Name, err)
		}
	}
	return nil
}

// enableTTL looks first: switching it on twice is an error.
func enableTTL(ctx context.Context, client *dynamodb.Client, name *string) error {
	out, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: name})
	if err != nil {
		return err
	}
	if t := out.TimeToLiveDescription; t != nil && (t.TimeToLiveStatus == types.TimeToLiveStatusEnabled || t.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		return nil
	}
	_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(table.TTLAttr), Enabled: aws.Bool(true)},
	})
	return err
}

func createInput(d table.Def, prefix string) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName:   aws.String(prefix + d.Name),
		BillingMode: types.BillingModePayPerRequest,
		KeySchema:   keySchema(pkAttr, skAttr),
	}
	names := []string{pkAttr, skAttr}
	for _, x := range d.Indexes {
		names = append(names, x.PK, x.SK)
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(x.Name), KeySchema: keySchema(x.PK, x.SK),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		})
	}
	for _, n := range names {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(n), AttributeType: types.ScalarAttributeTypeS})
	}
	return in
}

func keySchema(pk, sk string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(pk), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(sk), KeyType: types.KeyTypeRange},
	}
}
