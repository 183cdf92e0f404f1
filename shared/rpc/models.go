package rpc

import (
	"context"
	"strings"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/profile"
	"laneway/shared/model/thinking"
	"laneway/shared/protocol"
	"laneway/shared/session"
)

func (g *Gateway) modelsList(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.ModelsListParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	rows, err := g.modelRows(ctx, r.Tenant(), p.Provider)
	if err != nil {
		return err
	}
	return r.Reply(protocol.ModelsList{Models: rows})
}

func (g *Gateway) modelRows(ctx context.Context, tenant, provider string) ([]protocol.ModelRow, error) {
	models, err := g.Directory.Models(ctx, tenant)
	if err != nil {
		return nil, err
	}
	creds, usage, err := g.credentials(ctx, tenant)
	if err != nil {
		return nil, err
	}
	agents, err := g.Directory.Agents(ctx, tenant)
	if err != nil {
		return nil, err
	}
	rows := []protocol.ModelRow{}
	for i := range models {
		m := &models[i]
		if provider != "" && provider != m.Provider {
			continue
		}
		row := protocol.ModelRow{
			ID: m.ID, Name: orElse(m.Name, m.ID), Provider: m.Provider, Alias: m.Alias, ContextWindow: int64(m.ContextWindow),
		}
		setLevels(&row, m, agents)
		if m.Reasons || m.Plain {
			reasons := m.Reasons
			row.Reasoning = &reasons
		}
		if m.Images {
			row.Input = []string{"text", "image"}
		}
		why, until := available(m, creds, usage, g.Clock.Now())
		yes := why == ""
		row.Available, row.UnavailableReason = &yes, why
		if !until.IsZero() {
			row.UnavailableUntil = until.UnixMilli()
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// setLevels says how a model can be asked to think, and whether it is the default.
func setLevels(row *protocol.ModelRow, m *model.Info, agents []Agent) {
	known := levelsKnown(m.Provider, m.ID, []model.Info{*m})
	for _, l := range known {
		row.ThinkingLevels = append(row.ThinkingLevels, protocol.ThinkingLevel{ID: l, Label: l})
	}
	if len(known) == 1 {
		row.ThinkingDefault = known[0]
	}
	for _, a := range agents {
		if a.ID != session.DefaultAgent {
			continue
		}
		row.ThinkingDefault = orElse(row.ThinkingDefault, thinking.Nearest(a.Thinking, known))
		if a.Provider == m.Provider && a.Model == m.ID {
			row.Tags = []string{"default"}
		}
	}
}

// Why a model is not available.
const (
	noAuth     = "missing-auth"
	authFailed = "auth-failed"
	cooling    = "cooldown"
)

// available says why a model cannot be asked now, and until when; empty: it can.
func available(m *model.Info, creds []Credential, usage map[string]profile.Usage, now time.Time) (why string, until time.Time) {
	mine := 0
	for _, c := range creds {
		if c.Provider != m.Provider {
			continue
		}
		mine++
		if !c.Present {
			if why == "" {
				why = noAuth
			}
			continue
		}
		u := usage[profileID(c)]
		w := u.For(m.ID, now)
		if !w.Active(now) {
			return "", time.Time{}
		}
		if why == "" || why == noAuth || w.Until.Before(until) {
			why, until = reasonOf(w), w.Until
		}
	}
	return why, until
}

func reasonOf(w profile.Window) string {
	if w.Reason == model.Auth || w.Reason == model.AuthPermanent {
		return authFailed
	}
	return cooling
}

// profileID is the name under which the turns remember a credential.
func profileID(c Credential) string { return orElse(c.Profile, c.Provider+":default") }

// credentials reads what opens the providers and how it fared; nothing where no
// configuration says what that is.
func (g *Gateway) credentials(ctx context.Context, tenant string) ([]Credential, map[string]profile.Usage, error) {
	d, ok := g.Directory.(Credentials)
	if !ok {
		return nil, nil, nil
	}
	creds, err := d.Credentials(ctx, tenant)
	if err != nil || len(creds) == 0 {
		return nil, nil, err
	}
	usage, err := (&profile.Book{Store: g.Store, Clock: g.Clock}).Load(ctx, tenant)
	return creds, usage, err
}

// modelsAuthStatus says which credentials there are and which of them work. It never
// says what they are.
func (g *Gateway) modelsAuthStatus(ctx context.Context, r *Request) error {
	if _, err := protocol.Decode[protocol.ModelsAuthStatusParams](r.Method, r.Params); err != nil {
		return err
	}
	creds, usage, err := g.credentials(ctx, r.Tenant())
	if err != nil {
		return err
	}
	now := g.Clock.Now()
	out := protocol.AuthStatus{At: now.UnixMilli(), Providers: []protocol.AuthProvider{}}
	for _, c := range creds {
		n := len(out.Providers) - 1
		if n < 0 || out.Providers[n].Provider != c.Provider {
			out.Providers = append(out.Providers, protocol.AuthProvider{
				Provider: c.Provider, DisplayName: c.Provider, Status: protocol.AuthMissing, Profiles: []protocol.AuthProfile{},
			})
			n++
		}
		row := protocol.AuthProfile{ProfileID: profileID(c), Type: strings.ReplaceAll(c.Type, "-", "_"), Status: protocol.AuthMissing}
		if c.Present {
			row.Status = protocol.AuthStatic
			u := usage[row.ProfileID]
			if w := u.For("", now); w.Active(now) {
				row.UnavailableReason, row.UnavailableUntil = reasonOf(w), w.Until.UnixMilli()
			}
			for id, until := range u.Models {
				if until > now.UnixMilli() {
					if row.Models == nil {
						row.Models = map[string]int64{}
					}
					row.Models[id] = until
				}
			}
			row.ErrorCount, row.LastUsed = u.ErrorCount, u.LastUsed
			out.Providers[n].Status = protocol.AuthStatic
		}
		out.Providers[n].Profiles = append(out.Providers[n].Profiles, row)
	}
	return r.Reply(out)
}
