package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"laneway/shared/cost"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/session"
)

// methodAgent is the method whose runs always wait their turn; a stop must not.
const methodAgent = "agent"

// card answers a message that is nothing but a command which shows something.
func (g *Gateway) card(ctx context.Context, r *Request, ref session.Ref, message string) (text string, ok bool, err error) {
	if d, rest, found, problem := queueDirective(message); found && problem != nil {
		return problem.Error(), true, nil //nolint:nilerr // it is a text for the user
	} else if found && rest == "" {
		text, err = g.queueCommand(ctx, ref, d)
		return text, true, err
	}
	word, rest := cutWord(strings.TrimSpace(message))
	if rest != "" {
		return "", false, nil
	}
	switch strings.ToLower(word) {
	case "/help":
		return helpText, true, nil
	case "/commands":
		return commandsText(), true, nil
	case "/stop":
		if r.Method != methodAgent { // chat messages are answered as chat.abort is
			return "", false, nil
		}
		ids, others, err := g.stop(ctx, r, ref, "", stopStop)
		if err != nil || len(ids) == 0 && others == (offspring{}) {
			return "Nothing is at work.", true, err
		}
		return "⚙️ Agent was aborted." + others.String(), true, nil
	case "/whoami":
		return fmt.Sprintf("You are on connection %s of tenant %s.", r.Conn.ID, r.Tenant()), true, nil
	case "/status":
		text, err = g.statusCard(ctx, ref)
		return text, true, err
	case "/usage":
		text, err = g.usageCard(ctx, ref)
		return text, true, err
	}
	return "", false, nil
}

const helpText = "Write a message and the agent answers.\n" +
	"Session: /new, /reset, /stop, /queue, /status, /usage\n" +
	"Options: /think <level>, /model <provider/id>, /fast on|off|auto, /verbose on|full|off, /reasoning on|off|stream\n" +
	"An option alone holds for the session, within a message for that message. More: /commands"

func commandsText() string {
	lines := []string{"Commands:"}
	for _, c := range commands(true) {
		name := c.TextAliases[0]
		if len(c.Args) > 0 {
			name += " <" + c.Args[0].Name + ">"
		}
		lines = append(lines, name+" – "+c.Description)
	}
	return strings.Join(lines, "\n")
}

// statusCard says how things stand with a session.
func (g *Gateway) statusCard(ctx context.Context, ref session.Ref) (string, error) {
	v, agents, infos, err := g.judging(ctx, ref)
	if err != nil {
		return "", err
	}
	m, e, agent := &v.m, v.prefs(), session.AgentOf(ref.Key)
	pre, err := g.preferred(ctx, agents, agent)
	if err != nil {
		return "", err
	}
	used := modelOf(e, agents, agent)
	name := used.ModelProvider + "/" + used.Model
	if n := e.Fallback; n != nil && n.Selected == name {
		name += " (answering now: " + n.Active + ")"
	}
	rules := g.entryRules(m.Ref, e)
	lines := []string{
		"Laneway " + g.Version,
		"🧠 Model: " + name,
		"🧵 Session: " + ref.Key + " • " + orElse(statusOf(m), "idle") + updated(m, g.Clock.Now()),
		fmt.Sprintf("🧮 Tokens: %d in / %d out • 💵 Cost: %s", m.TokensIn, m.TokensOut, money(tokensCost(used.ModelProvider, used.Model, m, infos))),
		fmt.Sprintf("⚙️ Think: %s • verbose: %s • reasoning: %s • fast: %s",
			orElse(orElse(e.ThinkingLevel, pre.thinking), "default"), orElse(orElse(e.VerboseLevel, pre.verbose), "off"),
			orElse(orElse(e.ReasoningLevel, pre.reasoning), "off"), orElse(orElse(e.FastMode, pre.fast), "off")),
		fmt.Sprintf("🪢 Queue: %s • %d waiting • debounce %d ms • cap %d • drop %s", rules.Mode, len(m.Pending), rules.Debounce, rules.Cap, rules.Drop),
		"🔏 Claim: " + claimText(m, g.Clock.Now()),
	}
	return strings.Join(lines, "\n"), nil
}

func updated(m *session.Meta, now time.Time) string {
	if m.Updated == 0 {
		return ""
	}
	return " • updated " + now.Sub(time.UnixMilli(m.Updated)).Round(time.Second).String() + " ago"
}

func claimText(m *session.Meta, now time.Time) string {
	switch left := m.Lease.Sub(now).Round(time.Second); {
	case m.Owner == "":
		return fmt.Sprintf("free (token %d)", m.Token)
	case left <= 0:
		return fmt.Sprintf("held, lease over (token %d)", m.Token)
	default:
		return fmt.Sprintf("held, lease %s (token %d)", left, m.Token)
	}
}

// tokensCost prices the tokens of a session by the model that it uses now.
func tokensCost(provider, id string, m *session.Meta, infos []model.Info) cost.Money {
	u := cost.Used{Provider: provider, Model: id, Tokens: model.Usage{Input: m.TokensIn, Output: m.TokensOut}}
	for _, i := range infos {
		if i.Provider == provider && i.ID == id {
			u.Price = i.Price
		}
	}
	return cost.Of(u)
}

func money(m cost.Money) string {
	if len(m.Unpriced) > 0 {
		return "not known"
	}
	return fmt.Sprintf("$%.4f", m.USD)
}

// usageCard says what a session and its last run have used.
func (g *Gateway) usageCard(ctx context.Context, ref session.Ref) (string, error) {
	v, agents, infos, err := g.judging(ctx, ref)
	if err != nil {
		return "", err
	}
	m := &v.m
	used := modelOf(v.prefs(), agents, session.AgentOf(ref.Key))
	lines := []string{fmt.Sprintf("📊 Session: %d tokens in, %d out, cost as %s/%s: %s", m.TokensIn, m.TokensOut,
		used.ModelProvider, used.Model, money(tokensCost(used.ModelProvider, used.Model, m, infos)))}
	if m.LastRun == "" {
		return lines[0], nil
	}
	st, err := run.Load(ctx, g.Store, run.Ref{Tenant: ref.Tenant, Run: m.LastRun})
	if errors.Is(err, run.ErrUnknown) || err == nil && st.Outcome == nil {
		return lines[0], nil
	}
	if err != nil {
		return "", err
	}
	o := st.Outcome
	var u model.Usage
	if o.Usage != nil {
		u = *o.Usage
	}
	lines = append(lines, fmt.Sprintf("Last run: %s/%s, %d model calls, %d tool calls, %d tokens in, %d out, %s, $%.6f",
		o.Provider, o.Model, o.Steps, o.ToolCalls, u.Input, u.Output, (time.Duration(o.DurationMs)*time.Millisecond).Round(time.Millisecond), o.Cost().USD))
	return strings.Join(lines, "\n"), nil
}
