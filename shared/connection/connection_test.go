package connection_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"laneway/shared/connection"
	"laneway/shared/session"
	"laneway/shared/table"
	"laneway/shared/table/bolt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hand is a clock that goes when it is told to.
type hand struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) After(time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	c <- h.Now()
	return c
}

func (h *hand) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// store lets a test step in before a write, and lose an answer.
type store struct {
	table.Store
	mu     sync.Mutex
	before func(ops []table.Op)
	after  func(ops []table.Op, err error) error
	reads  int
}

func (s *store) Write(ctx context.Context, ops ...table.Op) (table.Result, error) {
	s.mu.Lock()
	before, after := s.before, s.after
	s.mu.Unlock()
	if before != nil {
		before(ops)
	}
	res, err := s.Store.Write(ctx, ops...)
	if after != nil {
		err = after(ops, err)
	}
	return res, err
}

func (s *store) Get(ctx context.Context, k table.Key) (table.Item, error) {
	s.mu.Lock()
	s.reads++
	s.mu.Unlock()
	return s.Store.Get(ctx, k)
}

func (s *store) set(before func([]table.Op), after func([]table.Op, error) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

type bundle struct {
	t     *testing.T
	clock *hand
	store *store
}

func setup(t *testing.T) (*connection.Service, *bundle) {
	t.Helper()
	b, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	u := &bundle{t: t, clock: &hand{now: time.UnixMilli(1_800_000_000_000)}, store: &store{Store: b}}
	return &connection.Service{Store: u.store, Clock: u.clock}, u
}

func (b *bundle) no(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) is(err, want error) {
	b.t.Helper()
	if !errors.Is(err, want) {
		b.t.Fatalf("error %v, want %v", err, want)
	}
}

var (
	alice = connection.Principal{
		Tenant: "acme", Role: "operator", Scopes: []string{"operator.read", "operator.write"}, DeviceID: "dev-1", Name: "laptop",
	}
	tui = connection.Client{ID: "openclaw-tui", Mode: "ui", Caps: []string{"tool-events"}, Protocol: 4}
)

func (b *bundle) ready(s *connection.Service, id string, p connection.Principal) {
	b.t.Helper()
	b.no(s.Open(b.t.Context(), connection.Row{ID: id, Callback: "https://cb/prod", Nonce: "n"}))
	b.no(s.Ready(b.t.Context(), id, p, tui))
}

func ids(list []connection.Subscriber) []string {
	out := []string{}
	for _, s := range list {
		out = append(out, s.ID)
	}
	return out
}

func (b *bundle) subscribers(s *connection.Service, tenant, key string, want ...string) {
	b.t.Helper()
	list, err := s.Subscribers(b.t.Context(), tenant, key)
	b.no(err)
	if got := ids(list); !slices.Equal(got, want) && len(got)+len(want) > 0 {
		b.t.Errorf("subscribers of %s in %s: %v, want %v", key, tenant, got, want)
	}
}

// active makes a run of the session active, or ends it.
func (b *bundle) active(key string, on bool) {
	b.t.Helper()
	op := table.Op{Kind: table.Update, Key: session.Ref{Tenant: "acme", Key: key}.MetaKey()}
	if on {
		op.Set = []table.SetOp{{Path: table.P(session.AttrActive), Value: "r1"}}
	} else {
		op.Remove = []table.Path{table.P(session.AttrActive)}
	}
	_, err := b.store.Store.Write(b.t.Context(), op)
	b.no(err)
}

func (b *bundle) subRev(key string) int64 {
	b.t.Helper()
	m, err := session.LoadMeta(b.t.Context(), b.store, session.Ref{Tenant: "acme", Key: key})
	b.no(err)
	return m.SubRev
}

func TestK1_ConnectIsOneStepFromPendingToReady(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	ctx := t.Context()
	b.is(s.Ready(ctx, "c1", alice, tui), connection.ErrGone)
	b.no(s.Open(ctx, connection.Row{ID: "c1", Callback: "https://cb/prod", Nonce: "n1"}))
	r, err := s.Load(ctx, "c1")
	b.no(err)
	if r.State != connection.Pending || r.Nonce != "n1" || r.Callback != "https://cb/prod" {
		t.Errorf("pending row %+v", r)
	}
	b.no(s.Open(ctx, connection.Row{ID: "c1", Nonce: "n1"})) // $connect, delivered twice
	b.no(s.Ready(ctx, "c1", alice, tui))
	b.is(s.Ready(ctx, "c1", alice, tui), connection.ErrState)
	b.is(s.Open(ctx, connection.Row{ID: "c1", Nonce: "n1"}), connection.ErrState)
	r, err = s.Load(ctx, "c1")
	b.no(err)
	if r.State != connection.Ready || r.Tenant != "acme" || r.Role != "operator" || !slices.Equal(r.Scopes, alice.Scopes) ||
		r.DeviceID != "dev-1" || r.Name != "laptop" || r.Client.ID != tui.ID || r.Mode != "ui" || r.Protocol != 4 || !r.Has("tool-events") {
		t.Errorf("ready row %+v", r)
	}
	if r.ExpiresAt.Sub(r.CreatedAt) != 2*time.Hour {
		t.Errorf("lives %v", r.ExpiresAt.Sub(r.CreatedAt))
	}
}

func TestK1_OneOfManyConnectsWins(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	b.no(s.Open(t.Context(), connection.Row{ID: "c1"}))
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() { errs <- s.Ready(t.Context(), "c1", alice, tui) }()
	}
	won := 0
	for range cap(errs) {
		switch err := <-errs; {
		case err == nil:
			won++
		case !errors.Is(err, connection.ErrState):
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d of them won", won)
	}
}

func TestK1_DisconnectThatCameFirstWins(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	ctx := t.Context()
	b.no(s.Open(ctx, connection.Row{ID: "c1"}))
	once := sync.OnceFunc(func() {
		b.store.set(nil, nil)
		b.no(s.Close(ctx, "c1"))
	})
	b.store.set(func([]table.Op) { once() }, nil)
	b.is(s.Ready(ctx, "c1", alice, tui), connection.ErrGone)
	if _, err := s.Load(ctx, "c1"); !errors.Is(err, connection.ErrGone) {
		t.Errorf("after all: %v", err)
	}
}

func TestK1_ConnectThatCameInBetweenIsClosedToo(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	ctx := t.Context()
	b.no(s.Open(ctx, connection.Row{ID: "c1"}))
	once := sync.OnceFunc(func() {
		b.store.set(nil, nil)
		b.no(s.Ready(ctx, "c1", alice, tui))
		b.no(s.Subscribe(ctx, "c1", "agent:main:s"))
	})
	b.store.set(func([]table.Op) { once() }, nil)
	b.no(s.Close(ctx, "c1"))
	if _, err := s.Load(ctx, "c1"); !errors.Is(err, connection.ErrGone) {
		t.Errorf("after all: %v", err)
	}
	b.subscribers(s, "acme", "agent:main:s")
}

func TestK1_LostAnswerOfConnectIsSettledByTheSameWrite(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	b.no(s.Open(t.Context(), connection.Row{ID: "c1"}))
	n := 0
	b.store.set(nil, func(_ []table.Op, err error) error {
		if n++; n == 1 {
			return table.ErrUnknown
		}
		return err
	})
	b.no(s.Ready(t.Context(), "c1", alice, tui))
	if n != 2 {
		t.Errorf("%d writes", n)
	}
}

func TestK1_SubscriptionNeedsAReadyConnection(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	ctx := t.Context()
	b.is(s.Subscribe(ctx, "c1", "k"), connection.ErrGone)
	b.no(s.Open(ctx, connection.Row{ID: "c1"}))
	b.is(s.Subscribe(ctx, "c1", "k"), connection.ErrState)
	b.no(s.Ready(ctx, "c1", alice, tui))

	once := sync.OnceFunc(func() { // a disconnect between the read and the transaction
		b.store.set(nil, nil)
		b.no(s.Close(ctx, "c1"))
	})
	b.store.set(func([]table.Op) { once() }, nil)
	b.is(s.Subscribe(ctx, "c1", "k"), connection.ErrGone)
	b.subscribers(s, "acme", "k")
}

func TestK1_CloseRemovesEverySubscription(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	ctx := t.Context()
	b.ready(s, "c1", alice)
	b.ready(s, "c2", alice)
	b.no(s.SubscribeAll(ctx, "c1"))
	for i := range connection.MaxSubscriptions - 1 {
		b.no(s.Subscribe(ctx, "c1", fmt.Sprintf("agent:main:s%d", i)))
	}
	b.is(s.Subscribe(ctx, "c1", "one too many"), connection.ErrTooMany)
	b.no(s.Subscribe(ctx, "c1", "agent:main:s1")) // has it already
	b.no(s.Subscribe(ctx, "c2", "agent:main:s1"))
	b.subscribers(s, "acme", "agent:main:s1", "c1", "c2")
	b.no(s.Close(ctx, "c1"))
	b.no(s.Close(ctx, "c1"))
	for i := range connection.MaxSubscriptions {
		if i != 1 {
			b.subscribers(s, "acme", fmt.Sprintf("agent:main:s%d", i))
		}
	}
	b.subscribers(s, "acme", "agent:main:s1", "c2")
}

func TestK1_SubscribersAtOnceKeepTheirCount(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	b.ready(s, "c1", alice)
	var wg sync.WaitGroup
	var mu sync.Mutex
	ok, refused := 0, 0
	for i := range 130 {
		wg.Go(func() {
			err := s.Subscribe(t.Context(), "c1", fmt.Sprintf("k%d", i))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				ok++
			case errors.Is(err, connection.ErrTooMany):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	r, err := s.Load(t.Context(), "c1")
	b.no(err)
	if ok != 100 || refused != 30 || len(r.Subscriptions) != 100 {
		t.Errorf("%d subscribed, %d refused, %d in the row", ok, refused, len(r.Subscriptions))
	}
}

func TestS5_SubscribeTellsARunThatIsActive(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	ctx := t.Context()
	const key = "agent:main:s"
	b.ready(s, "c1", alice)
	b.ready(s, "c2", alice)
	b.no(s.Subscribe(ctx, "c1", key))
	if n := b.subRev(key); n != 0 {
		t.Errorf("counter %d though nothing runs", n)
	}
	b.active(key, true)
	b.no(s.Subscribe(ctx, "c2", key))
	if n := b.subRev(key); n != 1 {
		t.Errorf("counter %d after a subscription during a run", n)
	}
	b.no(s.Unsubscribe(ctx, "c1", key))
	if n := b.subRev(key); n != 2 {
		t.Errorf("counter %d after an unsubscription during a run", n)
	}
	b.no(s.Unsubscribe(ctx, "c1", key))
	b.subscribers(s, "acme", key, "c2")
}

// A run that begins between the two tries of a subscription either reads it or is
// told of it.
func TestS5_RunThatBeginsMeanwhileIsNotMissed(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	const key = "agent:main:s"
	b.ready(s, "c1", alice)
	writes := 0
	b.store.set(func(ops []table.Op) {
		if writes++; writes == 2 { // the first found no run
			b.active(key, true)
			b.subscribers(s, "acme", key) // the run reads: not there yet
		}
	}, nil)
	b.no(s.Subscribe(t.Context(), "c1", key))
	b.store.set(nil, nil)
	b.subscribers(s, "acme", key, "c1")
	if n := b.subRev(key); n != 1 {
		t.Errorf("counter %d: the run will never know", n)
	}
}

func TestS6_SubscribersOfSessionAndTenantEachOnce(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	ctx := t.Context()
	b.ready(s, "both", alice)
	b.ready(s, "wide", alice)
	b.ready(s, "one", alice)
	bob := alice
	bob.Tenant = "other"
	b.ready(s, "foreign", bob)
	b.no(s.SubscribeAll(ctx, "both"))
	b.no(s.SubscribeAll(ctx, "wide"))
	b.no(s.SubscribeAll(ctx, "foreign"))
	for _, c := range []string{"both", "one", "foreign"} {
		b.no(s.Subscribe(ctx, c, "k"))
	}
	b.subscribers(s, "acme", "k", "both", "one", "wide")
	b.subscribers(s, "acme", "l", "both", "wide")
	b.subscribers(s, "other", "k", "foreign")
	list, err := s.Subscribers(ctx, "acme", "k")
	b.no(err)
	for _, sub := range list {
		if sub.Callback != "https://cb/prod" || !sub.Has("tool-events") || sub.Target().ConnectionID != sub.ID {
			t.Errorf("subscriber %+v", sub)
		}
	}
	b.no(s.Unsubscribe(ctx, "wide", connection.AllSessions))
	b.subscribers(s, "acme", "l", "both")
}

func TestK1_ExpiredRowsCountAsAbsent(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	ctx := t.Context()
	b.ready(s, "c1", alice)
	b.no(s.Subscribe(ctx, "c1", "k"))
	b.no(s.Open(ctx, connection.Row{ID: "c2"}))
	b.clock.pass(connection.Life - time.Millisecond)
	b.subscribers(s, "acme", "k", "c1")
	b.clock.pass(time.Millisecond)
	b.subscribers(s, "acme", "k")
	_, err := s.Load(ctx, "c1")
	b.is(err, connection.ErrGone)
	b.is(s.Ready(ctx, "c2", alice, tui), connection.ErrGone)
	b.is(s.Subscribe(ctx, "c1", "l"), connection.ErrGone)
	b.clock.pass(time.Millisecond)
	b.no(s.Open(ctx, connection.Row{ID: "c1"})) // another life of the id
	r, err := s.Load(ctx, "c1")
	b.no(err)
	if r.State != connection.Pending || len(r.Subscriptions) != 0 {
		t.Errorf("row %+v", r)
	}
}

func TestK2_ConnectionOfAnotherTenantIsNotFound(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	ctx := t.Context()
	b.ready(s, "c1", alice)
	b.no(s.Open(ctx, connection.Row{ID: "c2"}))
	if r, err := s.Find(ctx, "acme", "c1"); err != nil || r.ID != "c1" {
		t.Errorf("own connection: %v", err)
	}
	for _, c := range []struct{ tenant, id string }{{"other", "c1"}, {"", "c2"}, {"acme", "c2"}, {"acme", "c3"}} {
		_, err := s.Find(ctx, c.tenant, c.id)
		b.is(err, connection.ErrGone)
	}
}

func TestK2_PrincipalIsTrustedForAMinute(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	ctx := t.Context()
	cache := &connection.Cache{Service: s}
	b.no(s.Open(ctx, connection.Row{ID: "c1"}))
	_, err := cache.Get(ctx, "c1")
	b.is(err, connection.ErrState)
	b.no(s.Ready(ctx, "c1", alice, tui)) // what was pending is not remembered
	for range 5 {
		r, err := cache.Get(ctx, "c1")
		b.no(err)
		if r.Tenant != "acme" || r.State != connection.Ready {
			t.Errorf("row %+v", r)
		}
	}
	if b.store.reads != 2 {
		t.Errorf("%d reads", b.store.reads)
	}
	b.no(s.Close(ctx, "c1"))
	b.clock.pass(connection.CacheFor - time.Millisecond)
	_, err = cache.Get(ctx, "c1")
	b.no(err)
	b.clock.pass(time.Millisecond)
	_, err = cache.Get(ctx, "c1")
	b.is(err, connection.ErrGone)

	b.ready(s, "c2", alice)
	_, err = cache.Get(ctx, "c2")
	b.no(err)
	b.no(s.Close(ctx, "c2"))
	cache.Drop("c2")
	_, err = cache.Get(ctx, "c2")
	b.is(err, connection.ErrGone)
}

func TestK2_CacheDoesNotOutliveTheConnection(t *testing.T) {
	t.Parallel()
	s, b := setup(t)
	cache := &connection.Cache{Service: s}
	b.ready(s, "c1", alice)
	b.clock.pass(connection.Life - time.Second)
	_, err := cache.Get(t.Context(), "c1")
	b.no(err)
	b.clock.pass(time.Second)
	_, err = cache.Get(t.Context(), "c1")
	b.is(err, connection.ErrGone)
}
