package rpc_test

import (
	"maps"
	"strings"
	"testing"

	"laneway/shared/protocol"
)

// hourly is a job in the terms of the wire.
func hourly(more obj) obj {
	p := obj{"name": "n", "schedule": obj{"kind": "every", "everyMs": 3_600_000}, "payload": obj{"kind": "agentTurn", "message": "do it"}}
	maps.Copy(p, more)
	return p
}

func TestCron_AJobFromItsAdditionToItsRemoval(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	var job protocol.CronJob
	c.ok("cron.add", hourly(nil), &job)
	if job.ID == "" || !job.Enabled || job.State.NextRunAtMs == 0 || job.ConfigRevision != "1" {
		t.Fatalf("added %+v", job)
	}
	var res protocol.CronRunResult
	c.ok("cron.run", obj{"id": job.ID}, &res)
	if !res.Enqueued || !strings.HasPrefix(res.RunID, "cron:"+job.ID+":") {
		t.Fatalf("run %+v", res)
	}
	var wait protocol.Wait
	c.ok("agent.wait", obj{"runId": res.RunID, "timeoutMs": 20_000}, &wait)
	if wait.Status != protocol.StatusOK {
		t.Fatalf("wait %+v", wait)
	}
	w.idle("agent:main:cron:" + job.ID) // settled: the job was told before
	var runs protocol.CronRuns
	c.ok("cron.runs", obj{"jobId": job.ID}, &runs)
	if runs.Total != 1 || runs.Entries[0].Status != "ok" || runs.Entries[0].RunID != res.RunID || runs.Entries[0].Summary != "you said do it" {
		t.Errorf("runs %+v", runs)
	}
	c.ok("cron.update", obj{"id": job.ID, "patch": obj{"name": "other", "enabled": false}}, &job)
	if job.Name != "other" || job.Enabled || job.ConfigRevision != "2" {
		t.Errorf("updated %+v", job)
	}
	var list protocol.CronList
	c.ok("cron.list", obj{}, &list)
	if list.Total != 0 || list.SnapshotRevision == "" || list.NextOffset != nil {
		t.Errorf("without those that are off: %+v", list)
	}
	c.ok("cron.list", obj{"includeDisabled": true, "query": "OTHER"}, &list)
	if list.Total != 1 || list.Jobs[0].ID != job.ID {
		t.Errorf("with them: %+v", list)
	}
	c.ok("cron.remove", obj{"id": job.ID}, nil)
	e := c.fails("cron.get", obj{"id": job.ID}, protocol.CodeInvalidRequest, "cron job not found")
	if e.Detail("code") != "CRON_JOB_NOT_FOUND" {
		t.Errorf("details %v", e.Details)
	}
	c.ok("cron.runs", obj{"id": job.ID}, &runs) // its past stays
	if runs.Total != 1 {
		t.Errorf("runs of a removed job: %+v", runs)
	}
}

// A refusal names the member that is wrong.
func TestCron_ErrorsNameTheField(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	var job protocol.CronJob
	c.ok("cron.add", hourly(nil), &job)
	for _, x := range []struct {
		method string
		params obj
		want   string
	}{
		{"cron.add", hourly(obj{"schedule": obj{"kind": "cron", "expr": "nonsense"}}), "at /schedule/expr: "},
		{"cron.add", hourly(obj{"sessionTarget": "main"}), "at /payload/kind: "},
		{"cron.add", hourly(obj{"missed": "x"}), "at /missed: "},
		{"cron.add", hourly(obj{"agentId": "nobody"}), `unknown agent id "nobody"`},
		{"cron.update", obj{"id": job.ID, "patch": obj{"schedule": obj{"kind": "cron", "expr": "x"}}}, "at /patch/schedule/expr: "},
		{"cron.update", obj{"id": job.ID, "patch": obj{}, "expectedConfigRevision": "9"}, "changed meanwhile"},
		{"cron.update", obj{"id": "no-such-job", "patch": obj{}}, "cron job not found: no-such-job"},
		{"cron.run", obj{"id": "no-such-job"}, "cron job not found: no-such-job"},
		{"cron.runs", obj{}, "must have required property 'id'"},
		{"cron.runs", obj{"id": "no-such-job"}, "cron job not found: no-such-job"},
		{"wake", obj{"mode": "now", "text": "x", "agentId": "nobody"}, "unknown agent id"},
	} {
		c.fails(x.method, x.params, protocol.CodeInvalidRequest, x.want)
	}
}

func TestF28_CronRunSaysWhoRunsAndForHowLong(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	var job protocol.CronJob
	c.ok("cron.add", hourly(obj{"payload": obj{"kind": "agentTurn", "message": "hold it"}}), &job)
	var first, second protocol.CronRunResult
	c.ok("cron.run", obj{"id": job.ID}, &first)
	w.model.waitFor(t, "hold it")
	c.ok("cron.run", obj{"id": job.ID}, &second)
	if second.Enqueued || second.Ran == nil || *second.Ran || second.Reason != "already-running" || second.RunID != first.RunID || second.AgeMs == nil {
		t.Errorf("again %+v", second)
	}
	var status protocol.CronStatus
	c.ok("cron.status", obj{}, &status)
	if len(status.Running) != 1 || status.Running[0].RunID != first.RunID || status.Running[0].JobID != job.ID || status.Jobs != 1 || status.NextWakeAtMs == nil {
		t.Errorf("status %+v", status)
	}
	c.ok("chat.abort", obj{"sessionKey": "agent:main:cron:" + job.ID}, nil)
	w.idle("agent:main:cron:" + job.ID)
	c.ok("cron.status", obj{}, &status)
	if len(status.Running) > 0 {
		t.Errorf("after the abort %+v", status)
	}
}

func TestK2_CronIsTheTenantsOwn(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c, other := w.user(), w.stranger()
	var job protocol.CronJob
	c.ok("cron.add", hourly(obj{"delivery": obj{"mode": "webhook", "to": "https://example.com/"}}), &job)
	if job.WebhookSecret == "" {
		t.Error("an admin is not told the secret")
	}
	for _, m := range []string{"cron.get", "cron.run", "cron.remove", "cron.runs"} {
		other.fails(m, obj{"id": job.ID}, protocol.CodeInvalidRequest, "not found")
	}
	reader := w.scoped(protocol.ScopeRead)
	var seen protocol.CronJob
	reader.ok("cron.get", obj{"id": job.ID}, &seen)
	if seen.ID != job.ID || seen.WebhookSecret != "" {
		t.Errorf("a reader sees %+v", seen)
	}
	reader.fails("cron.add", hourly(nil), protocol.CodeForbidden, "missing scope")
	reader.fails("cron.run", obj{"id": job.ID}, protocol.CodeForbidden, "missing scope")
}

func TestCron_ListsComeInPages(t *testing.T) {
	t.Parallel()
	w := setup(t, noRunner)
	c := w.user()
	for _, name := range []string{"c", "a", "b"} {
		c.ok("cron.add", hourly(obj{"name": name}), nil)
	}
	var page protocol.CronList
	var got []string
	for offset := 0; ; {
		c.ok("cron.list", obj{"limit": 2, "offset": offset, "sortBy": "name"}, &page)
		for _, j := range page.Jobs {
			got = append(got, j.Name)
		}
		if page.NextOffset == nil {
			break
		}
		offset = *page.NextOffset
	}
	if strings.Join(got, "") != "abc" || page.Total != 3 || page.HasMore {
		t.Errorf("%v, %+v", got, page)
	}
}

func TestWake_PutsATextBeforeTheAgent(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := w.user()
	for _, mode := range []string{"now", "next-heartbeat"} {
		var woken protocol.Woken
		c.ok("wake", obj{"mode": mode, "text": "look: " + mode}, &woken)
		if !woken.OK || woken.RunID == "" {
			t.Errorf("%s: %+v", mode, woken)
		}
		w.model.waitFor(t, "look: "+mode)
	}
	w.idle("agent:main:main")
}
