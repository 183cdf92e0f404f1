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

// card answers a message that is nothing but a command which shows something, and no
// shortcut.
func (g *Gateway) card(ctx context.Context, r *Request, ref session.Ref, a *asked, message string) (text string, ok bool, err error) {
	word, rest := cutWord(strings.TrimSpace(message))
	word = strings.ToLower(word)
	if text, ok := absent(word, rest); ok {
		return text, true, nil
	}
	if rest != "" {
		return "", false, nil
	}
	switch word {
	case "/stop":
		if r.Method != methodAgent { // chat messages are answered as chat.abort is
			return "", false, nil
		}
		ids, others, err := g.stop(ctx, r, ref, "", stopStop)
		if err != nil {
			return "", true, err
		}
		if len(ids) == 0 && others == (offspring{}) {
			text, err = g.nothingStopped(ctx, ref)
			return text, true, err
		}
		return "⚙️ Agent was aborted." + others.String(), true, nil
	case "/usage":
		text, err = g.usageCard(ctx, ref, a)
		return text, true, err
	}
	return "", false, nil
}

// nothingStopped is why a stop found nothing: nobody was at work, or the end of what was
// is written and is being told.
func (g *Gateway) nothingStopped(ctx context.Context, ref session.Ref) (string, error) {
	m, err := session.LoadMeta(ctx, g.Store, ref)
	if err != nil {
		return "", err
	}
	if len(m.Unsettled) > 0 {
		return "Agent reply is already finalizing and can no longer be aborted.", nil
	}
	return "Nothing is at work.", nil
}

// absent answers a command about what this gateway has not, where nothing but its own
// words follows it: anything else is a text.
func absent(word, rest string) (text string, ok bool) {
	name, level, _ := strings.Cut(word, ":")
	rest = strings.TrimSpace(level + " " + rest)
	switch name {
	case "/elevated", "/elev":
		if len(strings.Fields(rest)) > 1 {
			return "", false
		}
		return "There is no elevated mode here: tools always run with the rights that their agent is configured with.", true
	case "/exec":
		for option := range strings.FieldsSeq(rest) {
			if key, _, ok := strings.Cut(option, "="); !ok || !execOptions[strings.ToLower(key)] {
				return "", false
			}
		}
		return "There is a single exec host here, the agent's own workspace: host, security, ask and node cannot be chosen.", true
	}
	return "", false
}

var execOptions = map[string]bool{"host": true, "security": true, "ask": true, "node": true}

// shortcuts answers those among what was found, each once, in its place.
func (g *Gateway) shortcuts(ctx context.Context, r *Request, ref session.Ref, a *asked, found []said, answers []string) (err error) {
	done := map[string]bool{}
	for i, s := range found {
		if done[s.name] || !s.shortcut() {
			continue
		}
		done[s.name] = true
		switch s.name {
		case dirHelp:
			answers[i] = helpText
		case dirCommands:
			answers[i] = commandsText()
		case dirWhoami:
			answers[i] = whoami(r, ref)
		case dirStatus:
			if answers[i], err = g.statusCard(ctx, ref, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// whoami says who the gateway takes a caller for; nothing of it opens anything.
func whoami(r *Request, ref session.Ref) string {
	c := &r.Conn
	who := "a token"
	if c.Name != "" {
		who = "the token " + c.Name
	}
	if c.DeviceID != "" {
		who += ", device " + c.DeviceID
	}
	return strings.Join([]string{
		"👤 You are here with " + who + " • tenant " + r.Tenant(),
		"🔌 Connection: " + c.ID + " • client " + c.Client.ID + " (" + c.Client.Mode + ")",
		"🔑 Role: " + c.Role + " • scopes: " + strings.Join(c.Scopes, ", "),
		"🧵 Session: " + ref.Key + " • agent: " + session.AgentOf(ref.Key),
	}, "\n")
}

const helpText = "Write a message and the agent answers.\n" +
	"Session: /new, /reset, /stop, /queue, /status, /usage\n" +
	"Options: /think <level>, /model <provider/id>, /fast on|off|auto, /verbose on|full|off, /reasoning on|off|stream, /trace on|off\n" +
	"An option alone holds for the session, within a message for that message. /help, /commands, /status and /whoami are answered " +
	"within a message, too. More: /commands"

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
func (g *Gateway) statusCard(ctx context.Context, ref session.Ref, a *asked) (string, error) {
	v, agents, infos, err := g.judging(ctx, ref)
	if err != nil {
		return "", err
	}
	a.over(&v)
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
func (g *Gateway) usageCard(ctx context.Context, ref session.Ref, a *asked) (string, error) {
	v, agents, infos, err := g.judging(ctx, ref)
	if err != nil {
		return "", err
	}
	a.over(&v)
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
