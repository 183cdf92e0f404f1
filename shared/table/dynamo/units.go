package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"laneway/shared/meter"
	"laneway/shared/table"
)

func countRead(ctx context.Context, c *types.ConsumedCapacity) {
	if c != nil && c.CapacityUnits != nil {
		meter.From(ctx).Add(meter.TableReadUnits, *c.CapacityUnits)
	}
}

// countWrite: the repetition of a transaction that was already done reads only.
func countWrite(ctx context.Context, c *types.ConsumedCapacity) {
	switch {
	case c == nil:
	case c.WriteCapacityUnits != nil:
		meter.From(ctx).Add(meter.TableWriteUnits, *c.WriteCapacityUnits)
	case c.ReadCapacityUnits != nil:
		meter.From(ctx).Add(meter.TableReadUnits, *c.ReadCapacityUnits)
	case c.CapacityUnits != nil:
		meter.From(ctx).Add(meter.TableWriteUnits, *c.CapacityUnits)
	}
}

// countFailed counts what a failed condition costs, which its answer does not tell: as
// much as rewriting the items that were found, and a unit for each of the others.
func (w *write) countFailed(ctx context.Context, out outcome) {
	if len(out.failed) == 0 {
		return
	}
	units := 0.0
	for _, f := range out.failed {
		if it, err := unmarshalItem(w.ops[f.op].Key.Table, f.found); err == nil {
			units += table.WriteUnits(it, it, w.transaction())
		}
	}
	others := len(w.ops) - len(out.failed)
	meter.From(ctx).Add(meter.TableWriteUnits, units+float64(others)*table.WriteUnits(nil, nil, w.transaction()))
}
