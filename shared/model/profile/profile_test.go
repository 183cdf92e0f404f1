package profile_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"laneway/shared/clock/clocktest"
	"laneway/shared/model"
	"laneway/shared/model/profile"
	"laneway/shared/table"
	"laneway/test/backends"
)

func failed(c model.Class) *model.Error { return &model.Error{Class: c, Status: 500} }

// Runtime 7.4: the windows of each class, failure by failure, each behind the window of
// the one before.
func TestCooldowns_7_4_Windows(t *testing.T) {
	t.Parallel()
	const s, m, h = time.Second, time.Minute, time.Hour
	for _, row := range []struct {
		name  string
		class model.Class
		model string
		want  []time.Duration
	}{
		{"generic: 30 s, 60 s, then 5 min", model.Overloaded, "x", []time.Duration{30 * s, 60 * s, 5 * m, 5 * m}},
		{"generic: auth", model.Auth, "x", []time.Duration{30 * s, 60 * s, 5 * m}},
		{"rate_limit: 30 s doubled, count kept across expiry", model.RateLimit, "x", []time.Duration{30 * s, m, 2 * m, 4 * m, 8 * m, 16 * m}},
		{"rate_limit without a model", model.RateLimit, "", []time.Duration{30 * s, m, 2 * m}},
		{"billing: 10 min doubled to 24 h", model.Billing, "x", []time.Duration{10 * m, 20 * m, 40 * m, 80 * m, 160 * m, 320 * m, 640 * m, 1280 * m, 24 * h, 24 * h}},
		{"auth_permanent: 10 min doubled to 1 h", model.AuthPermanent, "x", []time.Duration{10 * m, 20 * m, 40 * m, h, h}},
	} {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		var u profile.Usage
		for i, want := range row.want {
			u = u.Failed(failed(row.class), row.model, now)
			w := u.For(row.model, now)
			if got := w.Until.Sub(now); got != want || w.Reason != row.class {
				t.Errorf("%s, failure %d: %s because of %s, want %s", row.name, i+1, got, w.Reason, want)
			}
			now = w.Until
			if u.For(row.model, now).Active(now) {
				t.Errorf("%s: the window is open at its end", row.name)
			}
		}
	}
}

func TestCooldowns_7_4_Rules(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var none profile.Usage
	t.Run("an active window is never extended by failures inside it", func(t *testing.T) {
		t.Parallel()
		for _, c := range []model.Class{model.RateLimit, model.Billing, model.Overloaded, model.AuthPermanent} {
			u := none.Failed(failed(c), "x", now)
			until := u.For("x", now).Until
			later := u.Failed(failed(c), "x", now.Add(20*time.Second))
			if got := later.For("x", now.Add(20*time.Second)).Until; !got.Equal(until) || later.ErrorCount != 1 {
				t.Errorf("%s: %s became %s, %d errors", c, until, got, later.ErrorCount)
			}
		}
	})
	t.Run("rate limits are of one model: siblings stay usable", func(t *testing.T) {
		t.Parallel()
		u := none.Failed(failed(model.RateLimit), "x", now)
		if u.For("y", now).Active(now) || !u.For("x", now).Active(now) {
			t.Errorf("%+v", u)
		}
	})
	t.Run("failure counter window 24 h", func(t *testing.T) {
		t.Parallel()
		u := none.Failed(failed(model.Billing), "x", now)
		for _, c := range []struct{ after, want time.Duration }{{24 * time.Hour, 20 * time.Minute}, {24*time.Hour + time.Millisecond, 10 * time.Minute}} {
			at := now.Add(c.after)
			v := u.Failed(failed(model.Billing), "x", at)
			if got := v.For("x", at).Until.Sub(at); got != c.want {
				t.Errorf("after %s: %s, want %s", c.after, got, c.want)
			}
		}
	})
	t.Run("no cooldown", func(t *testing.T) {
		t.Parallel()
		for name, e := range map[string]*model.Error{
			"a timeout before the provider was reached": {Class: model.Timeout}, "format": failed(model.Format), "context": failed(model.ContextOverflow),
			"model_not_found": failed(model.ModelNotFound), "the caller": failed(model.Aborted), "tls": failed(model.TLSCertificate),
		} {
			if u := none.Failed(e, "x", now); u.Failing() {
				t.Errorf("%s: %+v", name, u)
			}
		}
		for name, e := range map[string]*model.Error{"a 504": {Class: model.Timeout, Status: 504}, "silence": {Class: model.Timeout, Err: model.ErrIdle}} {
			if u := none.Failed(e, "x", now); !u.Failing() {
				t.Errorf("%s leaves nothing", name)
			}
		}
	})
	t.Run("success clears failure state", func(t *testing.T) {
		t.Parallel()
		u := none.Failed(failed(model.Billing), "x", now)
		u = u.Succeeded(now)
		if u.Failing() || u.LastUsed != now.UnixMilli() || u.For("x", now).Active(now) {
			t.Errorf("%+v", u)
		}
	})
	t.Run("a used up allowance blocks as long as the provider says", func(t *testing.T) {
		t.Parallel()
		u := none.Failed(&model.Error{Class: model.RateLimit, LongWindow: true, RetryAfter: 3 * time.Hour}, "x", now)
		if got := u.For("y", now).Until.Sub(now); got != 3*time.Hour {
			t.Errorf("%s", got)
		}
	})
	t.Run("probes", func(t *testing.T) {
		t.Parallel()
		for _, row := range []struct {
			name    string
			left    time.Duration
			reason  model.Class
			primary bool
			want    bool
		}{
			{"allowed from 2 min before expiry", 2 * time.Minute, model.RateLimit, false, true},
			{"not earlier", 2*time.Minute + time.Second, model.Overloaded, true, false},
			{"billing for the primary only", 9 * time.Minute, model.Billing, true, true},
			{"billing of a fallback", time.Second, model.Billing, false, false},
			{"auth failures skip the provider", time.Second, model.Auth, true, false},
			{"revoked", time.Second, model.AuthPermanent, true, false},
		} {
			if got := profile.Probes(profile.Window{Until: now.Add(row.left), Reason: row.reason}, row.primary, now); got != row.want {
				t.Errorf("%s: %v", row.name, got)
			}
		}
	})
}

// Runtime 7.3.
func TestOrder_7_3(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cred := func(id, kind string) model.Credential { return model.Credential{ID: id, Type: kind, Present: true} }
	cold := func(d time.Duration) profile.Usage {
		return profile.Usage{CooldownUntil: now.Add(d).UnixMilli(), CooldownReason: model.Auth}
	}
	all := []model.Credential{cred("k1", "api-key"), cred("k2", "api-key"), cred("t", "token"), cred("o", "oauth")}
	for _, row := range []struct {
		name    string
		list    []model.Credential
		ordered bool
		usage   map[string]profile.Usage
		pin     profile.Pin
		want    []string
	}{
		{"OAuth > token > API key", all, false, nil, profile.Pin{}, []string{"o", "t", "k1", "k2"}},
		{"an explicit order is kept", all, true, nil, profile.Pin{}, []string{"k1", "k2", "t", "o"}},
		{"oldest lastUsed", all[:2], false, map[string]profile.Usage{"k1": {LastUsed: 5}, "k2": {LastUsed: 4}}, profile.Pin{}, []string{"k2", "k1"}},
		{"use does not change an explicit order", all[:2], true, map[string]profile.Usage{"k1": {LastUsed: 5}}, profile.Pin{}, []string{"k1", "k2"}},
		{
			"cooled last by soonest expiry", all, false,
			map[string]profile.Usage{"o": cold(time.Minute), "t": cold(time.Second)},
			profile.Pin{},
			[]string{"k1", "k2", "t", "o"},
		},
		{"one without a key is left out", []model.Credential{cred("a", "token"), {ID: "b", Type: "oauth"}}, false, nil, profile.Pin{}, []string{"a"}},
		{"sticky per session", all, true, nil, profile.Pin{ID: "t"}, []string{"t", "k1", "k2", "o"}},
		{"a user's pin is passed by while it is cooled", all, true, map[string]profile.Usage{"t": cold(time.Minute)}, profile.Pin{ID: "t", User: true}, []string{"k1", "k2", "o", "t"}},
		{"a pin that is gone", all[:2], true, nil, profile.Pin{ID: "gone", User: true}, []string{"k1", "k2"}},
	} {
		if got := profile.Order(row.list, row.ordered, row.usage, "x", row.pin, now); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

func TestBook_IsSharedByAllRunners(t *testing.T) {
	t.Parallel()
	backends.Each(t, func(t *testing.T, store table.Store) {
		c := clocktest.New()
		one, two := &profile.Book{Store: store, Clock: c}, &profile.Book{Store: store, Clock: c}
		if _, err := one.Failed(t.Context(), "t", "openai:a", failed(model.RateLimit), "x"); err != nil {
			t.Fatal(err)
		}
		all, err := two.Load(t.Context(), "t")
		u := all["openai:a"]
		if w := u.For("x", c.Now()); err != nil || len(all) != 1 || w.Until.Sub(c.Now()) != 30*time.Second {
			t.Fatalf("%+v, %v", all, err)
		}
		if other, err := two.Load(t.Context(), "other"); err != nil || len(other) != 0 {
			t.Errorf("another tenant sees %v, %v", other, err)
		}
		if _, err := two.Succeeded(t.Context(), "t", "openai:a"); err != nil {
			t.Fatal(err)
		}
		if all, _ = one.Load(t.Context(), "t"); all["openai:a"].ErrorCount != 0 {
			t.Errorf("%+v", all)
		}
	})
}

// Many runs meet the same limit at once: it is one incident.
func TestBook_FailuresAtOnceAreOne(t *testing.T) {
	t.Parallel()
	backends.Each(t, func(t *testing.T, store table.Store) {
		b := &profile.Book{Store: store, Clock: clocktest.New()}
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				if _, err := b.Failed(t.Context(), "t", "p", failed(model.Billing), "x"); err != nil && !errors.Is(err, table.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		all, err := b.Load(t.Context(), "t")
		if u := all["p"]; err != nil || u.ErrorCount != 1 || u.FailureCounts[model.Billing] != 1 {
			t.Errorf("%+v, %v", u, err)
		}
	})
}

// At least 30 s between the probes of a provider, by whomever.
func TestBook_Probe(t *testing.T) {
	t.Parallel()
	backends.Each(t, func(t *testing.T, store table.Store) {
		c := clocktest.New()
		b := &profile.Book{Store: store, Clock: c}
		ask := func(provider string, want bool) {
			t.Helper()
			if got, err := b.Probe(t.Context(), "t", provider); err != nil || got != want {
				t.Errorf("%s: %v, %v", provider, got, err)
			}
		}
		ask("a", true)
		ask("a", false)
		ask("b", true)
		c.Advance(29 * time.Second)
		ask("a", false)
		c.Advance(time.Second)
		ask("a", true)
		if all, err := b.Load(t.Context(), "t"); err != nil || len(all) != 0 {
			t.Errorf("probes are taken for usage: %v, %v", all, err)
		}
	})
}
