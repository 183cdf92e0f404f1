package loop

import (
	"context"
	"strings"

	"laneway/shared/protocol"
	"laneway/shared/queue"
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
		Heartbeat: a.heartbeat(), Unwatched: a.heartbeat() || a.st.Lane == string(queue.Cron), Full: a.verbose() == "full",
		SideEffects: did.acted, LastToolError: did.failure, Sent: did.sent,
	}
	if thought := thoughts(ans.blocks); thought != "" && a.reasoning() == "on" {
		in.Reasoning = "Thinking\n\n" + thought
	}
	said := reply.Assemble(in)
	var texts []string
	for _, p := range said {
		if p.IsSummary || p.IsReasoning {
			continue
		}
		if notice := a.notice(ctx); len(texts) == 0 && notice != "" {
			texts = append(texts, notice)
			out.Payloads = append(out.Payloads, run.Payload{Text: notice, Notice: true})
		}
		texts = append(texts, p.Text)
	}
	for _, p := range said {
		text, cut := protocol.TrimText(p.Text, maxOutcome)
		out.Payloads, out.Cut = append(out.Payloads, run.Payload{Text: text, IsError: p.IsError, Reasoning: p.IsReasoning}), out.Cut || cut
	}
	out.Text = strings.Join(texts, "\n\n")
}

// heartbeat says whether the run is one.
func (a *attempt) heartbeat() bool { return a.st.Input.RunKind == runHeartbeat }
