package cron

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"laneway/shared/clock"
	"laneway/shared/protocol"
	"laneway/shared/run"
	"laneway/shared/table"
)

// The history of a job is bounded by age and number.
const (
	historyKeep = 7 * 24 * time.Hour
	historyRows = 2000
	// trimEvery is by how much a history may outgrow that before it is cut.
	trimEvery = 50

	maxError   = 500  // characters of an error text
	maxSummary = 2000 // characters of a reply
)

// entry is an item of a job's history, under the time of its slot.
type entry struct {
	protocol.CronEntry
	slot int64 // ms
}

const (
	attrEntry = "entry"
	skRun     = "RUN#"
)

func entryKey(tenant, jobID string, slot int64) table.Key {
	sk := skRun + clock.FromMillis(slot).Format("2006-01-02T15:04:05.000Z")
	return table.Key{Table: table.Jobs, PK: jobPK(tenant, jobID), SK: sk}
}

func (e entry) op(j *Job) (table.Op, error) {
	e.NextRunAtMs = j.State.NextRunAtMs
	b, err := json.Marshal(e.CronEntry) //nolint:gosec // a session key is an address, no secret
	if err != nil {
		return table.Op{}, err
	}
	return table.Op{Kind: table.Put, Key: entryKey(j.Tenant, j.ID, e.slot), Item: table.Attrs{
		attrEntry: b, table.TTLAttr: clock.FromMillis(e.TS).Add(historyKeep).Unix(),
	}}, nil
}

// entryOf is the entry of a run that has ended.
func entryOf(j *Job, st *run.Status, res result) entry {
	o := st.Outcome
	e := entry{CronEntry: protocol.CronEntry{
		TS: st.EndedAt, JobID: j.ID, Action: "finished", Status: res.status, Error: j.State.LastError, ErrorReason: res.reason,
		Summary: cut(o.Text, maxSummary), RunID: st.RunID, SessionKey: st.SessionKey, SessionID: st.SessionID,
		RunAtMs: j.State.LastRunAtMs, DurationMs: j.State.LastDurationMs, Model: o.Model, Provider: o.Provider,
	}}
	if u := o.Usage; u != nil {
		e.Usage = &protocol.Usage{
			Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite,
			TotalTokens: cmp.Or(u.Total, u.Input+u.Output+u.CacheRead+u.CacheWrite),
		}
	}
	_, slot, _ := JobOf(st.RunID)
	e.slot = slot.UnixMilli()
	return e
}

// missed is the entry of a slot that was not run.
func missed(j *Job, slot, now time.Time) entry {
	return entry{CronEntry: protocol.CronEntry{
		TS: now.UnixMilli(), JobID: j.ID, Action: "finished", Status: statusSkipped, Error: "missed: nothing ran at its time",
		ErrorReason: ReasonMissed, RunAtMs: slot.UnixMilli(), DeliveryStatus: notRequested,
	}, slot: slot.UnixMilli()}
}

// cut keeps the first characters of a text.
func cut(text string, most int) string {
	r := []rune(text)
	if len(r) <= most {
		return text
	}
	return string(r[:most-1]) + "…"
}

// History gives what is kept of a job's past, the newest slot first.
func (s *Service) History(ctx context.Context, tenant, jobID string) ([]protocol.CronEntry, error) {
	var out []protocol.CronEntry
	oldest := s.now().Add(-historyKeep).UnixMilli()
	err := s.eachEntry(ctx, tenant, jobID, true, func(_ table.Key, e protocol.CronEntry) bool {
		if e.TS >= oldest {
			out = append(out, e)
		}
		return len(out) < historyRows
	})
	return out, err
}

// eachEntry reads a job's history until more says no.
func (s *Service) eachEntry(ctx context.Context, tenant, jobID string, newest bool, more func(table.Key, protocol.CronEntry) bool) error {
	q := table.Query{Table: table.Jobs, PK: jobPK(tenant, jobID), From: skRun, To: "RUN$", Desc: newest}
	for {
		page, err := s.Store.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("read history: %w", err)
		}
		for _, it := range page.Items {
			var e protocol.CronEntry
			if err := json.Unmarshal(it.Attrs.Bytes(attrEntry), &e); err != nil {
				return fmt.Errorf("history: %w", err)
			}
			if !more(it.Key, e) {
				return nil
			}
		}
		if page.Next == "" {
			return nil
		}
		q.After = page.Next
	}
}

// grow counts new entries, and says whether it is time to cut the history.
func (j *Job) grow(entries int) (full bool) {
	if j.Rows += int64(entries); j.Rows < historyRows+trimEvery {
		return false
	}
	j.Rows = historyRows
	return true
}

// trim cuts a history that has outgrown its bound. It is no matter where it fails: it
// is cut the next time.
func (s *Service) trim(ctx context.Context, j *Job) {
	var keys []table.Key
	err := s.eachEntry(ctx, j.Tenant, j.ID, false, func(k table.Key, _ protocol.CronEntry) bool {
		keys = append(keys, k)
		return true
	})
	if err == nil && len(keys) > historyRows {
		for part := range slices.Chunk(keys[:len(keys)-historyRows], trimEvery) {
			ops := make([]table.Op, len(part))
			for i, k := range part {
				ops[i] = table.Op{Kind: table.Delete, Key: k}
			}
			if err = s.write(ctx, ops...); err != nil {
				break
			}
		}
	}
	if err != nil {
		s.Log.Warn("history not cut", "job", j.ID, "err", err)
	}
}

// merge puts sorted lists of slots into one.
func merge(parts [][]Slot) []Slot {
	all := slices.Concat(parts...)
	slices.SortStableFunc(all, func(a, b Slot) int { return a.At.Compare(b.At) })
	return all
}
