package loop

import (
	"context"
	"slices"

	"laneway/shared/protocol"
	"laneway/shared/reply"
	"laneway/shared/run"
)

// runHeartbeat is the kind of a run that only looks whether there is something to do.
const runHeartbeat = "heartbeat"

// reply puts what the run has to say at its end into its outcome: messages for whoever
// gets a list of them, and one text for a chat, where summaries of tools and thoughts
// have places of their own.
func (a *attempt) reply(ctx context.Context, out *run.Outcome, ans *answer) {
	did := a.report()
	in := reply.Input{
		Answer: ans.visible, Silent: ans.silent, OutputLimit: ans.stop == "length", Summaries: did.summaries,
		Heartbeat: a.heartbeat(), Unwatched: a.heartbeat() || scheduled(a.st.Lane), Full: a.verbose() == "full",
		SideEffects: did.acted, LastToolError: did.failure, Sent: a.sent(),
	}
	if thought := thoughts(ans.blocks); thought != "" && a.reasoning() == "on" {
		in.Reasoning = "Thinking\n\n" + thought
	}
	said := reply.Assemble(in)
	if says(said) {
		if notice := a.notice(ctx); notice != "" {
			out.Payloads = append(out.Payloads, run.Payload{Text: notice, Notice: true})
		}
	}
	first := len(out.Payloads)
	for _, p := range said {
		out.Payloads = append(out.Payloads, run.Payload{Text: p.Text, IsError: p.IsError, Reasoning: p.IsReasoning, Summary: p.IsSummary})
	}
	out.Text = out.Said()
	for i := first; i < len(out.Payloads); i++ {
		p, most := &out.Payloads[i], maxOutcome
		if p.Reasoning {
			most = maxReasoning
		}
		text, cut := protocol.TrimText(p.Text, most)
		p.Text, out.Cut = text, out.Cut || cut
	}
}

// says is whether payloads have more than what tools did and what was thought.
func says(list []reply.Payload) bool {
	return slices.ContainsFunc(list, func(p reply.Payload) bool { return !p.IsSummary && !p.IsReasoning })
}

// heartbeat says whether the run is one.
func (a *attempt) heartbeat() bool { return a.st.Input.RunKind == runHeartbeat }
