package loop

import (
	"context"
	"errors"
	"slices"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/profile"
	"laneway/shared/model/retry"
	"laneway/shared/run"
	"laneway/shared/session"
)

// Chains knows which models may answer a run, the wanted one first (spec: runtime 7.5).
type Chains interface {
	Candidates(ctx context.Context, in run.Input, e session.Entry, agentID string) ([]model.Candidate, error)
}

// Cooldowns is what all runners know of credentials.
type Cooldowns interface {
	Load(ctx context.Context, tenant string) (map[string]profile.Usage, error)
	Failed(ctx context.Context, tenant, id string, e *model.Error, modelID string) (profile.Usage, error)
	Succeeded(ctx context.Context, tenant, id string) (profile.Usage, error)
	Probe(ctx context.Context, tenant, provider string) (bool, error)
}

// routing is where a run is in its chain. It is in the checkpoint, so that another
// attempt goes on with the model that this one had come to.
type routing struct {
	At       string   `json:"at,omitempty"`      // provider/id; empty: not chosen yet
	Profile  string   `json:"profile,omitempty"` // the credential
	Spent    []string `json:"spent,omitempty"`   // credentials of At's provider that failed
	Extra    int      `json:"extra,omitempty"`   // of them, those tried after a rate limit or overload
	Passed   []passed `json:"passed,omitempty"`  // models that were given up
	Probed   []string `json:"probed,omitempty"`  // providers that were probed
	Failures int      `json:"failures,omitempty"`
	Switches int      `json:"switches,omitempty"` // of the session's model that were followed
}

// passed is a model that did not answer, and why.
type passed struct {
	Ref    string      `json:"ref"`
	Reason model.Class `json:"reason"`
}

// chain is the models of a run.
type chain struct {
	all   []model.Candidate
	at    int
	usage map[string]profile.Usage
	kept  bool // the success of the credential in use was noted
}

// chooseModel finds the models that may answer, and the first of them that may be asked
// now; a run that had come to another one goes on with that.
func (a *attempt) chooseModel(ctx context.Context) error {
	if a.r.Chains == nil {
		sel, err := a.r.Models.Select(ctx, a.st.Input, a.entry)
		a.chain.all = []model.Candidate{{Selected: sel}}
		a.sel = sel
		return err
	}
	all, err := a.candidates(ctx, a.entry)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return &model.Error{Class: model.ModelNotFound, Message: "No model is configured for this run."}
	}
	a.chain.all, a.sel = all, all[0].Selected
	if a.choice() {
		if a.chain.usage, err = a.r.Cooldowns.Load(ctx, a.ref.Tenant); err != nil {
			a.r.Logger.Warn("cooldowns not read", "session", a.ref.Hash(), "err", err)
		}
	}
	at := slices.IndexFunc(all, func(c model.Candidate) bool { return c.Ref() == a.chk.Route.At })
	if at >= 0 && !all[at].Missing {
		return a.use(at, a.chk.Route.Profile)
	}
	return a.firstModel(ctx)
}

// candidates are the models that may answer the run where this holds for its session.
func (a *attempt) candidates(ctx context.Context, e session.Entry) ([]model.Candidate, error) {
	in, agentID := a.st.Input, a.st.AgentID
	return leave(ctx, a, func() ([]model.Candidate, error) { return a.r.Chains.Candidates(ctx, in, e, agentID) })
}

// choice says whether there is anything to choose from: if not, nothing is remembered of
// credentials, and no table is asked.
func (a *attempt) choice() bool {
	if a.r.Cooldowns == nil {
		return false
	}
	return len(a.chain.all) > 1 || len(a.chain.all) == 1 && len(a.chain.all[0].Profiles) > 1
}

// firstModel takes the first model that may be asked. Where all are left alone it takes
// the one that is free first: an answer that fails is better than none that was tried.
func (a *attempt) firstModel(ctx context.Context) error {
	best, bestProfile := -1, ""
	var soonest profile.Window
	for i := range a.chain.all {
		id, w, ok := a.usable(ctx, i)
		if ok {
			return a.use(i, id)
		}
		if c := &a.chain.all[i]; !c.Missing {
			if best < 0 || w.Until.Before(soonest.Until) {
				best, bestProfile, soonest = i, id, w
			}
		}
		a.pass(i, w.Reason)
	}
	if best < 0 {
		c := &a.chain.all[0]
		return &model.Error{Class: model.Auth, Message: "No key is configured for the model provider " + c.Name + ".", Provider: c.Name, Model: c.Model}
	}
	a.chk.Route.Passed = nil
	return a.use(best, bestProfile)
}

// pass notes that a model is given up.
func (a *attempt) pass(i int, why model.Class) {
	if why == "" {
		why = model.Auth // no credential is there
	}
	a.chk.Route.Passed = append(a.chk.Route.Passed, passed{a.chain.all[i].Ref(), why})
}

// usable says whether a model may be asked now, and with which credential. Where not it
// gives the credential that is free first, and when that is.
func (a *attempt) usable(ctx context.Context, i int) (id string, w profile.Window, ok bool) {
	c := &a.chain.all[i]
	now := a.r.Clock.Now()
	if c.Missing {
		return "", w, false
	}
	id = defaultProfile(c)
	if len(c.Profiles) > 0 {
		order := a.order(i)
		if len(order) == 0 {
			return "", w, false
		}
		id = order[0]
	}
	u := a.chain.usage[id]
	w = u.For(c.Model, now)
	if skip := a.skipUntil(i, id); skip.After(w.Until) {
		w = profile.Window{Until: skip, Reason: model.Auth}
	}
	if !w.Active(now) {
		return id, w, true
	}
	if !profile.Probes(w, i == 0, now) || slices.Contains(a.chk.Route.Probed, c.Name) {
		return id, w, false
	}
	mine, err := a.r.Cooldowns.Probe(ctx, a.ref.Tenant, c.Name)
	if err != nil {
		a.r.Logger.Warn("probe not noted", "session", a.ref.Hash(), "err", err)
	}
	if mine {
		a.chk.Route.Probed = append(a.chk.Route.Probed, c.Name)
	}
	return id, w, mine
}

// order is the credentials of a model that did not fail in this run, the next one first.
func (a *attempt) order(i int) []string {
	c := &a.chain.all[i]
	all := profile.Order(c.Profiles, c.Ordered, a.chain.usage, c.Model, a.pin(), a.r.Clock.Now())
	all = slices.DeleteFunc(all, func(id string) bool { return slices.Contains(a.chk.Route.Spent, id) })
	slices.SortStableFunc(all, func(x, y string) int { // those that are passed by come last
		return a.skipUntil(i, x).Compare(a.skipUntil(i, y))
	})
	return all
}

// skipUntil is until when a fallback is passed by in this session with a credential. The
// model that is wanted is always asked.
func (a *attempt) skipUntil(i int, id string) time.Time {
	if until := a.r.Skips.Until(a.skip(i, id)); i > 0 && until.After(a.r.Clock.Now()) {
		return until
	}
	return time.Time{}
}

func (a *attempt) skip(i int, id string) profile.Skip {
	c := &a.chain.all[i]
	return profile.Skip{Session: a.ref.PK(), Provider: c.Name, Model: c.Model, Profile: id}
}

// pin is the credential that the session keeps to. One that a run chose by itself holds
// for one transcript: a reset clears it.
func (a *attempt) pin() profile.Pin {
	user := a.entry.AuthProfileSource == "user"
	if a.entry.AuthProfile == "" || !user && a.entry.AuthProfileFor != a.sid {
		return profile.Pin{}
	}
	return profile.Pin{ID: a.entry.AuthProfile, User: user}
}

// defaultProfile is the name under which the only key of a provider is remembered.
func defaultProfile(c *model.Candidate) string { return c.Name + ":default" }

// use takes a model and a credential.
func (a *attempt) use(i int, id string) error {
	c := &a.chain.all[i]
	sel := c.Selected
	if len(c.Profiles) > 0 {
		if id == "" {
			return &model.Error{Class: model.Auth, Message: "No key is configured for the model provider " + c.Name + ".", Provider: c.Name, Model: c.Model}
		}
		p, err := c.Open(id)
		if err != nil {
			return err
		}
		sel.Provider = p
	}
	a.chain.at, a.chain.kept, a.sel = i, false, sel
	a.chk.Route.At, a.chk.Route.Profile = c.Ref(), id
	a.retry.HasFallback(i+1 < len(a.chain.all))
	return nil
}

// moves says whether another credential or model may answer what this one did not. What
// is wrong with the request, or wanted by the user, is wrong everywhere; the size that a
// provider takes is its own.
func moves(e *model.Error) bool {
	switch e.Class {
	case model.ContextOverflow:
		return e.Oversize
	case model.Format, model.Aborted, retry.OutputLimit:
		return false
	case model.Auth, model.AuthPermanent, model.RateLimit, model.Overloaded, model.Billing, model.ServerError, model.Timeout,
		model.TLSCertificate, model.ModelNotFound, model.SessionExpired, model.EmptyResponse, model.NoErrorDetails, model.Unclassified, model.Unknown:
		return true
	}
	return true
}

// rotates says whether another credential of the same provider may do better.
func rotates(c model.Class) bool {
	switch c { //nolint:exhaustive // the others are not about the credential
	case model.Auth, model.AuthPermanent, model.Billing, model.RateLimit, model.Overloaded, model.ServerError, model.Timeout, model.SessionExpired:
		return true
	}
	return false
}

// failover goes on to the next credential of the provider, else to the next model. What
// was shown is taken back first, and where the run is now is in its record before the
// next one is asked. false: there is nobody left to ask.
func (a *attempt) failover(ctx context.Context, e *model.Error) (bool, error) {
	a.remember(ctx, e)
	if a.retry.Broken() || !moves(e) {
		return false, nil
	}
	if moved, err := a.redirected(ctx); moved || err != nil {
		return moved, err
	}
	from := a.chain.at
	i, id, ok := a.next(ctx, e)
	if !ok {
		return false, nil
	}
	state := a.retry.State()
	a.retry = retry.New(a.r.Retry)
	if i == from {
		// The same model under another credential: what was spent on it stays spent, only
		// the window begins anew.
		if m, err := retry.Restore(a.r.Retry, state); err == nil {
			m.Success()
			a.retry = m
		}
	}
	if err := a.use(i, id); err != nil {
		return false, err
	}
	a.takeBack()
	if i != from {
		a.out.Emit("lifecycle", map[string]any{
			"phase": "fallback_step", "fromProvider": a.chain.all[from].Name, "fromModel": a.chain.all[from].Model,
			"toProvider": a.sel.Name, "toModel": a.sel.Model, "reason": string(e.Class), "position": i,
		})
		a.out.Emit("lifecycle", map[string]any{"phase": "model", "provider": a.sel.Name, "model": a.sel.Model})
	}
	return true, a.commit(ctx, change{})
}

// maxSwitches bounds how often a scheduled run follows a choice that is made while it is
// at work. Others are followed as often as people choose: that the calls that failed
// before are counted bounds it.
const maxSwitches = 2

// redirected follows a choice of the session's model that was made since the run began:
// the run goes on with that one, wherever it is in the chain or beside it. What the run
// itself names holds against it.
func (a *attempt) redirected(ctx context.Context) (bool, error) {
	if a.r.Chains == nil || a.st.Input.Model != "" || scheduled(a.st.Lane) && a.chk.Route.Switches >= maxSwitches {
		return false, nil
	}
	e, err := session.LoadEntry(ctx, a.r.Store, a.ref)
	if err != nil {
		a.r.Logger.Warn("session's choice not read", "session", a.ref.Hash(), "err", err)
		return false, nil
	}
	if e.Deleted || e.ModelProvider == a.entry.ModelProvider && e.ModelOverride == a.entry.ModelOverride {
		return false, nil
	}
	a.entry = e
	all, err := a.candidates(ctx, e)
	if err != nil || len(all) == 0 {
		return false, nil //nolint:nilerr // what was chosen cannot be asked: the chain goes on
	}
	a.chain.all, a.retry = all, retry.New(a.r.Retry)
	a.chk.Route = routing{Switches: a.chk.Route.Switches + 1, Failures: a.chk.Route.Failures, Probed: a.chk.Route.Probed}
	if err := a.firstModel(ctx); err != nil {
		return false, err
	}
	a.takeBack()
	a.out.Emit("lifecycle", map[string]any{"phase": "model", "provider": a.sel.Name, "model": a.sel.Model})
	return true, a.commit(ctx, change{})
}

// next finds who is asked instead.
func (a *attempt) next(ctx context.Context, e *model.Error) (i int, id string, ok bool) {
	r, c := &a.chk.Route, &a.chain.all[a.chain.at]
	if r.Profile != "" {
		r.Spent = append(r.Spent, r.Profile)
	}
	limited := e.Class == model.RateLimit || e.Class == model.Overloaded
	if len(c.Profiles) > 0 && rotates(e.Class) && (!limited || r.Extra == 0) {
		if id, _, ok := a.usable(ctx, a.chain.at); ok {
			if limited {
				r.Extra++
			}
			return a.chain.at, id, true
		}
	}
	a.pass(a.chain.at, e.Class)
	for i := a.chain.at + 1; i < len(a.chain.all); i++ {
		if a.chain.all[i].Name != c.Name {
			r.Spent = nil // other keys; those of this provider stay spent
		}
		id, w, ok := a.usable(ctx, i)
		if ok {
			r.Extra = 0
			return i, id, true
		}
		a.pass(i, w.Reason)
	}
	return 0, "", false
}

// remember tells all runners that a credential failed, and the session's later runs here
// that it was refused for a fallback.
func (a *attempt) remember(ctx context.Context, e *model.Error) {
	if refused := e.Class == model.Auth || e.Class == model.AuthPermanent; refused && a.chain.at > 0 {
		a.r.Skips.Note(a.skip(a.chain.at, a.chk.Route.Profile))
	}
	if !a.choice() || !profile.Cools(e) || a.chk.Route.Profile == "" {
		return
	}
	id := a.chk.Route.Profile
	u, err := a.r.Cooldowns.Failed(ctx, a.ref.Tenant, id, e, a.sel.Model)
	if err != nil {
		a.r.Logger.Warn("cooldown not noted", "session", a.ref.Hash(), "err", err)
		return
	}
	if a.chain.usage == nil {
		a.chain.usage = map[string]profile.Usage{}
	}
	a.chain.usage[id] = u
}

// worked forgets what a credential failed before, and keeps the session to it.
func (a *attempt) worked(ctx context.Context) {
	if a.chain.kept || !a.choice() || a.chk.Route.Profile == "" {
		return
	}
	a.chain.kept = true
	id, c := a.chk.Route.Profile, &a.chain.all[a.chain.at]
	if u := a.chain.usage[id]; u.Failing() || len(c.Profiles) > 1 {
		u, err := a.r.Cooldowns.Succeeded(ctx, a.ref.Tenant, id)
		if err != nil {
			a.r.Logger.Warn("cooldown not cleared", "session", a.ref.Hash(), "err", err)
		} else if a.chain.usage != nil {
			a.chain.usage[id] = u
		}
	}
	if pin := a.pin(); len(c.Profiles) < 2 || pin.User || pin.ID == id {
		return
	}
	e, err := session.UpdateEntry(ctx, a.r.Store, a.ref, func(e *session.Entry) error {
		if e.AuthProfileSource == "user" && e.AuthProfile != "" {
			return errPinned
		}
		e.AuthProfile, e.AuthProfileSource, e.AuthProfileFor = id, "auto", a.sid
		return nil
	})
	if err == nil {
		a.entry.AuthProfile, a.entry.AuthProfileSource, a.entry.AuthProfileFor = e.AuthProfile, e.AuthProfileSource, e.AuthProfileFor
	} else if !errors.Is(err, errPinned) {
		a.r.Logger.Warn("credential not pinned", "session", a.ref.Hash(), "err", err)
	}
}

var errPinned = errors.New("a person has chosen another credential")

// maxFailures bounds the failed calls of a run, over all models and credentials (spec:
// loop 1.12).
func (a *attempt) maxFailures() int {
	n := 0
	for i := range a.chain.all {
		n += max(1, len(a.chain.all[i].Profiles))
	}
	return min(max(24+8*n, 32), 160)
}
