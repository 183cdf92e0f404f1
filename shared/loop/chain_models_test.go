package loop_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"laneway/shared/model"
	"laneway/shared/model/profile"
	"laneway/shared/run"
	"laneway/shared/session"
	"laneway/shared/wiring"
)

// models is a chain of fake models whose calls are written down in order.
type models struct {
	mu    sync.Mutex
	calls []string // provider/id, or that and the credential
	all   []model.Candidate
	// beside are models that only a session's choice leads to.
	beside []model.Candidate
	fakes  map[string]*fakeModel
}

// newModels makes models of "provider/id", or of that and the ids of credentials.
func newModels(t *testing.T, specs ...string) *models {
	t.Helper()
	m := &models{fakes: map[string]*fakeModel{}}
	for _, spec := range specs {
		words := strings.Fields(spec)
		provider, id, _ := strings.Cut(words[0], "/")
		c := model.Candidate{Selected: model.Selected{Name: provider, Model: id, Endpoint: model.Local}}
		for _, p := range words[1:] {
			c.Profiles = append(c.Profiles, model.Credential{ID: p, Provider: provider, Type: "api-key", Present: true})
		}
		c.Ordered = true
		c.Open = func(p string) (model.Provider, error) { return m.fake(t, words[0]+" "+p), nil }
		c.Provider = m.fake(t, words[0])
		m.all = append(m.all, c)
	}
	return m
}

func (m *models) fake(t *testing.T, name string) *fakeModel {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.fakes[name]; f != nil {
		return f
	}
	f := newFakeModel()
	t.Cleanup(f.release)
	f.on(say("answer of " + name))
	m.fakes[name] = f
	return f
}

// on scripts the model of a name; what it is asked is written down.
func (m *models) on(t *testing.T, name string, script ...answerFunc) {
	t.Helper()
	f, n := m.fake(t, name), 0
	f.by(func(model.Request) answerFunc {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.calls = append(m.calls, name)
		n++
		return script[min(n, len(script))-1]
	})
}

func (m *models) asked() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.calls, ", ")
}

func (m *models) Candidates(_ context.Context, _ run.Input, e session.Entry, _ string) ([]model.Candidate, error) {
	if e.ModelOverride == "" {
		return slices.Clone(m.all), nil
	}
	var out []model.Candidate // a choice of the session is strict
	for _, c := range slices.Concat(m.all, m.beside) {
		if c.Model == e.ModelOverride {
			out = append(out, c)
		}
	}
	return out, nil
}

// chained is an option: the run's models are these, and none is asked twice.
func chained(m *models) func(*process, *wiring.Settings, *wiring.RunnerConfig) {
	return func(_ *process, _ *wiring.Settings, rc *wiring.RunnerConfig) {
		rc.Chains = m
		rc.Retry.MaxRetries = -1
	}
}

// lengthen makes the third failure of it: five minutes.
func lengthen(t *testing.T, b *profile.Book) error {
	t.Helper()
	for range 3 {
		all, err := b.Load(t.Context(), session.DefaultTenant)
		if err != nil {
			return err
		}
		u := all["a:default"]
		if w := u.For("one", b.Clock.Now()); w.Active(b.Clock.Now()) {
			b = &profile.Book{Store: b.Store, Clock: clockAt(w.Until)}
		}
		if _, err := b.Failed(t.Context(), session.DefaultTenant, "a:default", &model.Error{Class: model.Overloaded, Status: 529}, "one"); err != nil {
			return err
		}
	}
	return nil
}

type clockAt time.Time

func (c clockAt) Now() time.Time                     { return time.Time(c) }
func (clockAt) After(time.Duration) <-chan time.Time { return nil }
