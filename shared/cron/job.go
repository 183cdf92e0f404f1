package cron

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"laneway/shared/id"
	"laneway/shared/protocol"
	"laneway/shared/table"
)

// Job is a job as it is stored: what clients see of it, and what only this package
// needs.
type Job struct {
	protocol.CronJob
	own
	Tenant string
	ver    int64 // counts the writes of the item: each is conditioned on the one before
	due    int64 // ms: time under which the item stands among the due ones; 0: none
}

// own is the state that clients do not see.
type own struct {
	Running *Running `json:"running,omitempty"`
	// LastSlot is in ms. Every slot up to it is decided: run, skipped or missed.
	LastSlot int64 `json:"lastSlot,omitempty"`
	Retries  int   `json:"retries,omitempty"` // of a transient error, in a row
	// Recompute: the next look is not a slot, the schedule could not be computed.
	Recompute bool   `json:"recompute,omitempty"`
	Rows      int64  `json:"rows,omitempty"` // of the history, at most so many
	Rev       int64  `json:"rev,omitempty"`  // counts the changes of the definition
	Secret    string `json:"secret,omitempty"`
	Write     string `json:"write,omitempty"` // id of the last write: settles a lost answer
}

// Running is the run of a job that has not ended. It is written before the run is
// accepted: whoever finds it not Accepted carries it out.
type Running struct {
	RunID    string `json:"id"`
	Slot     int64  `json:"slot"` // ms
	Since    int64  `json:"since"`
	Forced   bool   `json:"forced,omitempty"`
	Accepted bool   `json:"ok,omitempty"`
}

// RunID is the id of a slot's run.
func RunID(jobID string, slot time.Time) string {
	return fmt.Sprintf("cron:%s:%d", jobID, slot.UnixMilli())
}

// JobOf is the job and the slot that a run id is of.
func JobOf(runID string) (jobID string, slot time.Time, ok bool) {
	rest, ok := strings.CutPrefix(runID, "cron:")
	if !ok {
		return "", slot, false
	}
	i := strings.LastIndexByte(rest, ':')
	if i <= 0 {
		return "", slot, false
	}
	ms, err := strconv.ParseInt(rest[i+1:], 10, 64)
	return rest[:i], time.UnixMilli(ms), err == nil
}

const (
	skMeta  = "META"
	attrJob = "job"
	attrOwn = "own"
	attrVer = "ver"
	attrDue = "due"
)

func jobPK(tenant, jobID string) string { return tenant + "#J#" + jobID }

func jobKey(tenant, jobID string) table.Key {
	return table.Key{Table: table.Jobs, PK: jobPK(tenant, jobID), SK: skMeta}
}

// The jobs of a tenant are listed by an item each under one key.
func listPK(tenant string) string { return tenant + "#JOBS" }

func listKey(tenant, jobID string) table.Key {
	return table.Key{Table: table.Jobs, PK: listPK(tenant), SK: jobID}
}

// dueShards is over how many partitions jobs that are due are spread, of all tenants
// together: one partition takes about 250 runs a second.
const dueShards = 4

func duePK(shard int) string { return "DUE#" + strconv.Itoa(shard) }

// dueKey is where a job stands among the due ones.
func dueKey(tenant, jobID string, at int64) table.Key {
	shard := int(id.Hash(tenant, jobID)[0]) % dueShards
	return table.Key{Table: table.Jobs, PK: duePK(shard), SK: fmt.Sprintf("%s#%s#%s", dueSK(at), tenant, jobID)}
}

func dueSK(at int64) string { return fmt.Sprintf("%015d", at) }

// slotOfDue is the inverse of dueKey.
func slotOfDue(sk string) (Slot, bool) {
	at, rest, _ := strings.Cut(sk, "#")
	tenant, jobID, ok := strings.Cut(rest, "#")
	ms, err := strconv.ParseInt(at, 10, 64)
	return Slot{tenant, jobID, time.UnixMilli(ms)}, ok && err == nil
}

// item is the job as a table item's attributes.
func (j *Job) item() (table.Attrs, error) {
	def, err := json.Marshal(j.CronJob) //nolint:gosec // a session key is an address, no secret
	if err != nil {
		return nil, err
	}
	rest, err := json.Marshal(j.own) //nolint:gosec // the secret is kept to sign with
	if err != nil {
		return nil, err
	}
	return table.Attrs{attrJob: def, attrOwn: rest, attrVer: j.ver, attrDue: j.due}, nil
}

func decodeJob(tenant string, it table.Item) (*Job, error) {
	j := &Job{Tenant: tenant, ver: it.Attrs.Int(attrVer), due: it.Attrs.Int(attrDue)}
	if err := json.Unmarshal(it.Attrs.Bytes(attrJob), &j.CronJob); err != nil {
		return nil, fmt.Errorf("job: %w", err)
	}
	if err := json.Unmarshal(it.Attrs.Bytes(attrOwn), &j.own); err != nil {
		return nil, fmt.Errorf("job: %w", err)
	}
	return j, nil
}

// intentWithin is how long whoever marked a run has for accepting it before somebody
// else does.
const intentWithin = 15 * time.Second

// dueAt is when somebody must look at the job, in ms; 0: never.
func (j *Job) dueAt() int64 {
	switch {
	case j.Running != nil && !j.Running.Accepted:
		return j.Running.Since + intentWithin.Milliseconds()
	case j.Enabled:
		return j.State.NextRunAtMs
	}
	return 0
}

// Wire is the job as clients see it. Its secret is for admins.
func (j *Job) Wire(admin bool) protocol.CronJob {
	w := j.CronJob
	w.ConfigRevision = strconv.FormatInt(j.Rev, 10)
	if !j.Enabled {
		w.State.NextRunAtMs = 0
	}
	if r := j.Running; r != nil {
		w.State.RunningAtMs, w.State.RunningRunID = r.Since, r.RunID
	}
	if admin && j.webhook() != "" {
		w.WebhookSecret = j.Secret
	}
	return w
}

// webhook is where the job's results are posted; empty: nowhere.
func (j *Job) webhook() string {
	if d := j.Delivery; d != nil && d.Mode == modeWebhook {
		return d.To.Value
	}
	return ""
}
