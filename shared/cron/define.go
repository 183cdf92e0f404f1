package cron

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"laneway/shared/protocol"
	"laneway/shared/session"
)

// Words of a job's definition.
const (
	targetMain     = "main"
	targetIsolated = "isolated"
	targetCurrent  = "current"
	targetSession  = "session:" // and a key or a name

	payloadEvent = "systemEvent"
	payloadTurn  = "agentTurn"

	modeNone     = "none"
	modeAnnounce = "announce"
	modeWebhook  = "webhook"

	wakeNow = "now"
)

// define is the job that a caller asks for, with what was not said.
func define(p *protocol.CronAddParams) protocol.CronJob {
	j := protocol.CronJob{
		Name: strings.TrimSpace(p.Name), DeclarationKey: p.DeclarationKey, DisplayName: p.DisplayName, Description: p.Description, Owner: p.Owner,
		AgentID: p.AgentID.Value, SessionKey: p.SessionKey.Value, Enabled: p.Enabled == nil || *p.Enabled, Schedule: p.Schedule,
		DeleteAfterRun: p.Schedule.Kind == kindAt, SessionTarget: p.SessionTarget, WakeMode: p.WakeMode, Payload: p.Payload,
		Delivery: p.Delivery, FailureAlert: p.FailureAlert, Missed: p.Missed,
	}
	if p.DeleteAfterRun != nil {
		j.DeleteAfterRun = *p.DeleteAfterRun
	}
	return j
}

// complete fills what a definition leaves open (spec: runtime 8.1).
func complete(j *protocol.CronJob, now time.Time) {
	if j.SessionTarget == "" {
		j.SessionTarget = targetMain
		if j.Payload.Kind == payloadTurn {
			j.SessionTarget = targetCurrent
		}
	}
	if j.SessionTarget == targetCurrent && j.SessionKey == "" {
		j.SessionTarget = targetIsolated
	}
	if j.WakeMode == "" {
		j.WakeMode = wakeNow
	}
	if j.Missed == "" {
		j.Missed = MissedOnce
	}
	if j.Delivery == nil {
		j.Delivery = &protocol.CronDelivery{}
	}
	if j.Delivery.Mode == "" {
		j.Delivery.Mode = modeAnnounce
		if j.SessionTarget == targetMain {
			j.Delivery.Mode = modeNone
		}
	}
	if j.Schedule.Kind == kindEvery && j.Schedule.AnchorMs == nil {
		at := now.UnixMilli()
		j.Schedule.AnchorMs = &at
	}
}

// check says what of a job cannot be: a *FieldError.
func (s *Service) check(j *Job) error {
	if strings.TrimSpace(j.Name) == "" {
		return field("name", "must not be blank")
	}
	if _, err := s.schedule(j); err != nil {
		if f, ok := err.(*FieldError); ok { //nolint:errorlint // made here, never wrapped
			return field("schedule."+f.Field, "%s", f.Text)
		}
		return err
	}
	if _, err := parsePolicy(j.Missed); err != nil {
		return field("missed", "%v", err)
	}
	if err := checkTarget(j); err != nil {
		return err
	}
	if err := checkPayload(&j.Payload); err != nil {
		return err
	}
	if j.FailureAlert != nil && !j.FailureAlert.Off {
		return field("failureAlert", "can only be false here: a delivery with mode 'webhook' tells of failures too")
	}
	return checkDelivery(j.Delivery, j.SessionTarget)
}

func checkTarget(j *Job) error {
	if j.AgentID != "" && !session.ValidAgent(j.AgentID) {
		return field("agentId", "must match [a-z0-9][a-z0-9_-]{0,63}")
	}
	switch {
	case j.SessionTarget == targetMain && j.Payload.Kind != payloadEvent:
		return field("payload.kind", "must be 'systemEvent' with sessionTarget 'main'; agent turns run in 'isolated', 'current' or 'session:<id>'")
	case j.SessionTarget != targetMain && j.Payload.Kind != payloadTurn:
		return field("payload.kind", "must be 'agentTurn' with sessionTarget '%s'", j.SessionTarget)
	case j.SessionTarget == targetMain && agentOf(j) != session.DefaultAgent:
		return field("agentId", "must be '%s' with sessionTarget 'main'; other agents run in 'isolated'", session.DefaultAgent)
	}
	if _, _, err := target(j); err != nil {
		at := "sessionTarget"
		if j.SessionTarget == targetCurrent {
			at = "sessionKey"
		}
		return field(at, "%v", err)
	}
	return nil
}

// checkPayload refuses what would otherwise be ignored.
func checkPayload(p *protocol.CronPayload) error {
	switch {
	case p.Kind == payloadEvent && strings.TrimSpace(p.Text) == "":
		return field("payload.text", "must not be blank")
	case p.Kind == payloadTurn && strings.TrimSpace(p.Message) == "":
		return field("payload.message", "must not be blank")
	case len(p.ToolsAllow) > 0:
		return field("payload.toolsAllow", "is not supported: a run has the tools of its agent")
	case p.AllowUnsafeExternalContent:
		return field("payload.allowUnsafeExternalContent", "is not supported")
	}
	return nil
}

func checkDelivery(d *protocol.CronDelivery, target string) error {
	switch d.Mode {
	case modeNone, modeWebhook:
		if d.Mode == modeWebhook {
			if err := checkURL(d.To.Value); err != nil {
				return field("delivery.to", "%v", err)
			}
		}
	case modeAnnounce:
		if target == targetMain {
			return field("delivery.mode", "must not be 'announce' with sessionTarget 'main'")
		}
		if c := d.Channel.Value; c != "" && c != "last" {
			return field("delivery.channel", "there are no channels here; 'webhook' posts to an address")
		}
	default:
		return field("delivery.mode", "must be none, announce or webhook")
	}
	for name, raw := range map[string]json.RawMessage{"failureDestination": d.FailureDestination, "completionDestination": d.CompletionDestination} {
		if len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
			return field("delivery."+name, "is not supported")
		}
	}
	return nil
}

// target is the session that a job's runs are in; fresh says that each begins with an
// empty past.
func target(j *Job) (key string, fresh bool, err error) {
	switch {
	case j.SessionTarget == targetMain:
		key, _, err = session.Key("", agentOf(j))
	case j.SessionTarget == targetCurrent:
		key, _, err = session.Key(j.SessionKey, j.AgentID)
	case strings.HasPrefix(j.SessionTarget, targetSession):
		key, _, err = session.Key(strings.TrimPrefix(j.SessionTarget, targetSession), j.AgentID)
	default:
		key, fresh, err = "agent:"+agentOf(j)+":cron:"+j.ID, true, nil
	}
	return key, fresh, err
}

// patch changes a definition. reschedule says that the schedule is another one.
func patch(j *protocol.CronJob, p *protocol.CronPatch) (reschedule bool) {
	if p.Name != "" {
		j.Name = strings.TrimSpace(p.Name)
	}
	text := func(to *string, o protocol.Optional[string]) {
		if o.Set {
			*to = o.Value
		}
	}
	text(&j.DisplayName, p.DisplayName)
	text(&j.Description, p.Description)
	text(&j.AgentID, p.AgentID)
	text(&j.SessionKey, p.SessionKey)
	text(&j.Missed, p.Missed)
	if p.DeleteAfterRun != nil {
		j.DeleteAfterRun = *p.DeleteAfterRun
	}
	if p.SessionTarget != "" {
		j.SessionTarget = p.SessionTarget
	}
	if p.WakeMode != "" {
		j.WakeMode = p.WakeMode
	}
	if p.FailureAlert.Set {
		j.FailureAlert = nil
		if !p.FailureAlert.Null {
			j.FailureAlert = &p.FailureAlert.Value
		}
	}
	if p.Payload != nil {
		patchPayload(&j.Payload, p.Payload)
	}
	if p.Delivery != nil {
		d := *j.Delivery
		patchDelivery(&d, p.Delivery)
		j.Delivery = &d
	}
	if p.Schedule != nil {
		reschedule = !sameSchedule(j.Schedule, *p.Schedule)
		if reschedule {
			j.Schedule = *p.Schedule
		}
	}
	return reschedule
}

// sameSchedule says whether a new schedule is the old one; an anchor that is not named
// stays.
func sameSchedule(old, now protocol.CronSchedule) bool {
	if now.Kind == kindEvery && now.AnchorMs == nil {
		now.AnchorMs = old.AnchorMs
	}
	a, errA := json.Marshal(old)
	b, errB := json.Marshal(now)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

func patchPayload(to, from *protocol.CronPayload) {
	if from.Kind != to.Kind {
		*to = *from
		return
	}
	if from.Text != "" {
		to.Text = from.Text
	}
	if from.Message != "" {
		to.Message = from.Message
	}
	if from.Model.Set {
		to.Model = from.Model
	}
	if from.Thinking.Set {
		to.Thinking = from.Thinking
	}
	if from.TimeoutSeconds.Set {
		to.TimeoutSeconds = from.TimeoutSeconds
	}
	if from.LightContext != nil {
		to.LightContext = from.LightContext
	}
	if from.Fallbacks != nil {
		to.Fallbacks = from.Fallbacks
	}
	if from.ToolsAllow != nil {
		to.ToolsAllow = from.ToolsAllow
	}
	to.AllowUnsafeExternalContent = to.AllowUnsafeExternalContent || from.AllowUnsafeExternalContent
}

func patchDelivery(to, from *protocol.CronDelivery) {
	if from.Mode != "" {
		to.Mode = from.Mode
	}
	for _, m := range []struct{ to, from *protocol.Optional[string] }{
		{&to.Channel, &from.Channel}, {&to.To, &from.To}, {&to.AccountID, &from.AccountID},
	} {
		if m.from.Set {
			*m.to = *m.from
		}
	}
	if from.ThreadID != nil {
		to.ThreadID = from.ThreadID
	}
	if from.BestEffort != nil {
		to.BestEffort = from.BestEffort
	}
	if from.FailureDestination != nil {
		to.FailureDestination = from.FailureDestination
	}
	if from.CompletionDestination != nil {
		to.CompletionDestination = from.CompletionDestination
	}
}
