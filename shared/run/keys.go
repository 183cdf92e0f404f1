// Package run is the record of a run: what was asked, what became of it, and who
// waits for it.
//
// Guarantees: a run id names one request for as long as its record is kept, which
// is at least 24 h after its end; it has one outcome, written once; every waiter
// gets an answer and, but for a crash in between, exactly one; all waiters of a
// run get the same outcome.
package run

import (
	"fmt"
	"strings"
	"time"

	"laneway/shared/id"
	"laneway/shared/table"
)

// Short is the form of a run id that the hot item and the keys carry: the id
// itself up to 64 bytes, else a hash. The mark of a hash cannot begin a short id
// of a caller: such ids are hashed too.
func Short(runID string) string {
	if len(runID) <= 64 && !strings.HasPrefix(runID, "~") {
		return runID
	}
	return "~" + id.Hash(runID)
}

// Ref addresses a run; Run is the short id.
type Ref struct{ Tenant, Run string }

// RefOf is the Ref of a run id.
func RefOf(tenant, runID string) Ref { return Ref{tenant, Short(runID)} }

// PK is the partition of the run's items.
func (r Ref) PK() string { return r.Tenant + "#R#" + r.Run }

// StatusKey is the key of the record.
func (r Ref) StatusKey() table.Key { return table.Key{Table: table.Runs, PK: r.PK(), SK: "STATUS"} }

// EventKey is the key of a batch of events that begins with seq.
func (r Ref) EventKey(seq int64) table.Key {
	return table.Key{Table: table.Runs, PK: r.PK(), SK: fmt.Sprintf("E#%010d", seq)}
}

// LedgerKey is the key of a tool call in the ledger.
func (r Ref) LedgerKey(step int64, index int) table.Key {
	return table.Key{Table: table.Runs, PK: r.PK(), SK: fmt.Sprintf("C#%06d#%d", step, index)}
}

// WaiterKey is the key of a client that waits.
func (r Ref) WaiterKey(connectionID, requestID string) table.Key {
	return table.Key{Table: table.Runs, PK: r.PK(), SK: "W#" + id.Hash(connectionID, requestID)}
}

// Keep is how long a record is kept after the end of its run.
const Keep = 48 * time.Hour
