package protocol

import (
	"reflect"
	"slices"
)

// Scopes of an operator. Admin implies all, write implies read and talk.
const (
	ScopeAdmin     = "operator.admin"
	ScopeRead      = "operator.read"
	ScopeWrite     = "operator.write"
	ScopeApprovals = "operator.approvals"
	ScopeQuestions = "operator.questions"
	ScopePairing   = "operator.pairing"
	ScopeTalk      = "operator.talk"
)

// ScopeSatisfied says whether the granted scopes allow what needs required. No
// required scope is always satisfied.
func ScopeSatisfied(granted []string, required string) bool {
	if required == "" || slices.Contains(granted, required) || slices.Contains(granted, ScopeAdmin) {
		return true
	}
	return (required == ScopeRead || required == ScopeTalk) && slices.Contains(granted, ScopeWrite)
}

// Method is an entry of the method table.
type Method struct {
	Name string
	// Scope is the least that a caller needs, "" for none. Some requests of a method
	// need more: agent with /new or /reset, and see PatchScope, CreateScope and
	// DeleteScope.
	Scope string
	// Hidden methods work and are not listed in hello-ok.
	Hidden bool
	params reflect.Type
}

func method[T any](name, scope string) Method {
	return Method{Name: name, Scope: scope, params: reflect.TypeFor[T]()}
}

func hidden(m Method) Method {
	m.Hidden = true
	return m
}

// methods is sorted by family, as the reference lists them.
var methods = []Method{
	hidden(method[ConnectParams]("connect", "")),
	method[HealthParams]("health", ""), // the reference answers it without any scope
	method[StatusParams]("status", ScopeRead),
	method[AgentParams]("agent", ScopeWrite),
	method[AgentWaitParams]("agent.wait", ScopeWrite),
	method[ChatSendParams]("chat.send", ScopeWrite),
	method[ChatHistoryParams]("chat.history", ScopeRead),
	method[ChatAbortParams]("chat.abort", ScopeWrite),
	method[ChatStartupParams]("chat.startup", ScopeRead),
	method[ChatMetadataParams]("chat.metadata", ScopeRead),
	hidden(method[ChatInjectParams]("chat.inject", ScopeAdmin)),
	method[SessionsListParams]("sessions.subscribe", ScopeRead),
	method[NoParams]("sessions.unsubscribe", ScopeRead),
	method[SessionsMessagesSubscribeParams]("sessions.messages.subscribe", ScopeRead),
	method[SessionKeyParams]("sessions.messages.unsubscribe", ScopeRead),
	method[SessionsListParams]("sessions.list", ScopeRead),
	method[SessionsDescribeParams]("sessions.describe", ScopeRead),
	hidden(method[SessionsResolveParams]("sessions.resolve", ScopeRead)),
	hidden(method[SessionsGetParams]("sessions.get", ScopeRead)),
	method[SessionsPreviewParams]("sessions.preview", ScopeRead),
	method[SessionKeyParams]("sessions.explain", ScopeRead),
	method[SessionsAbortParams]("sessions.abort", ScopeWrite),
	method[SessionsSendParams]("sessions.send", ScopeWrite),
	method[SessionsCreateParams]("sessions.create", ScopeWrite),
	method[SessionsPatchParams]("sessions.patch", ScopeWrite),
	method[SessionsResetParams]("sessions.reset", ScopeAdmin),
	method[SessionsDeleteParams]("sessions.delete", ScopeWrite),
	method[SessionsCompactParams]("sessions.compact", ScopeAdmin),
	method[NoParams]("agents.list", ScopeRead),
	method[ModelsListParams]("models.list", ScopeRead),
	method[ModelsAuthStatusParams]("models.authStatus", ScopeRead),
	method[CommandsListParams]("commands.list", ScopeRead),
	method[NoParams]("question.list", ScopeQuestions),
	method[NoParams]("plugin.approval.list", ScopeApprovals),
	method[RunsListParams]("runs.list", ScopeRead),
	method[RunsAbortParams]("runs.abort", ScopeWrite),
	method[RunsCostParams]("runs.cost", ScopeRead),
	hidden(method[DLQListParams]("dlq.list", ScopeAdmin)),
	hidden(method[DLQParams]("dlq.retry", ScopeAdmin)),
	hidden(method[DLQParams]("dlq.purge", ScopeAdmin)),
	method[UploadsCreateParams]("uploads.create", ScopeWrite),
	method[CronAddParams]("cron.add", ScopeAdmin),
	method[CronUpdateParams]("cron.update", ScopeAdmin),
	method[CronJobParams]("cron.remove", ScopeAdmin),
	method[CronRunParams]("cron.run", ScopeAdmin),
	method[CronListParams]("cron.list", ScopeRead),
	method[CronJobParams]("cron.get", ScopeRead),
	method[NoParams]("cron.status", ScopeRead),
	method[CronRunsParams]("cron.runs", ScopeRead),
	method[WakeParams]("wake", ScopeWrite),
}

// Lookup finds a method.
func Lookup(name string) (Method, bool) {
	for _, m := range methods {
		if m.Name == name {
			return m, true
		}
	}
	return Method{}, false
}

// PatchScope is the scope that a patch needs: admin for what widens the rights of
// a session.
func PatchScope(p *SessionsPatchParams) string {
	switch {
	case p.PermissionMode.Value == "full", p.ExecHost.Set, p.ExecSecurity.Set, p.ExecAsk.Set, p.ExecNode.Set,
		p.ElevatedLevel.Set, p.SendPolicy.Set, p.GroupActivation.Set, p.TraceLevel.Set:
		return ScopeAdmin
	}
	return ScopeWrite
}

// CreateScope is the scope that making a session needs.
func CreateScope(p *SessionsCreateParams) string {
	if p.Incognito || p.ToolOverrides != nil || p.PermissionMode == "full" {
		return ScopeAdmin
	}
	return ScopeWrite
}

// DeleteScope is the scope that a deletion needs: admin, unless it takes archived
// sessions only.
func DeleteScope(p *SessionsDeleteParams) string {
	if p.ArchivedOnly {
		return ScopeWrite
	}
	return ScopeAdmin
}
