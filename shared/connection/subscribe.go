package connection

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"laneway/shared/clock"
	"laneway/shared/push"
	"laneway/shared/session"
	"laneway/shared/table"
)

// Subscriber is a connection that gets the events of a session.
type Subscriber struct {
	ID       string
	Callback string
	Caps     []string
	token    string
}

// Target is where the subscriber's frames go.
func (s *Subscriber) Target() push.Target {
	return push.Target{ConnectionID: s.ID, Callback: s.Callback}
}

// Has says whether the subscriber's client announced a capability.
func (s *Subscriber) Has(capability string) bool { return slices.Contains(s.Caps, capability) }

// Subscribe gives a connection the events of a session, from the moment on that it
// returns; what a run has sent by then is in its log. A run that is active is told
// by its session's counter. Subscribing twice is no error. ErrGone: the connection
// ended; ErrState: it is not ready; ErrTooMany.
func (s *Service) Subscribe(ctx context.Context, connectionID, sessionKey string) error {
	return s.change(ctx, connectionID, sessionKey, true)
}

// SubscribeAll gives a connection the events of all sessions of its tenant. Runs
// that are active already learn of it when they read their subscribers again.
func (s *Service) SubscribeAll(ctx context.Context, connectionID string) error {
	return s.change(ctx, connectionID, AllSessions, true)
}

// Unsubscribe is the inverse of Subscribe, and of SubscribeAll with the key
// AllSessions.
func (s *Service) Unsubscribe(ctx context.Context, connectionID, sessionKey string) error {
	return s.change(ctx, connectionID, sessionKey, false)
}

// change adds or removes a subscription. The row is changed only as it was read,
// so that the count is right, and the session only while what was assumed of it
// holds: a run that begins between two tries would otherwise read its subscribers
// before this one is there, and never be told.
func (s *Service) change(ctx context.Context, connectionID, sessionKey string, add bool) error {
	row, err := s.Load(ctx, connectionID)
	if err != nil {
		return err
	}
	for active := true; ; {
		switch {
		case row.State != Ready:
			return ErrState
		case slices.Contains(row.Subscriptions, sessionKey) == add:
			return nil
		case add && len(row.Subscriptions) >= MaxSubscriptions:
			return ErrTooMany
		}
		ops := []table.Op{s.rowOp(&row, sessionKey, add), s.subscriptionOp(&row, sessionKey, add)}
		if sessionKey != AllSessions {
			ops = append(ops, sessionOp(session.Ref{Tenant: row.Tenant, Key: sessionKey}, active))
		}
		err := s.write(ctx, ops...)
		ce, failed := table.Failed(err)
		switch {
		case err == nil:
			return nil
		case !failed:
			return fmt.Errorf("change subscription: %w", err)
		case ce.Op == 2:
			active = !active
		case ce.Found == nil:
			return ErrGone
		default: // somebody else, or an earlier try of ours, changed the row
			row = decode(ce.Found)
		}
	}
}

func (s *Service) rowOp(r *Row, sessionKey string, add bool) table.Op {
	op := table.Op{
		Kind: table.Update, Key: rowKey(r.ID),
		Add: []table.AddOp{{Path: table.P(attrRev), N: 1}},
		If:  table.All(table.Equal(table.P(attrState), string(Ready)), table.Equal(table.P(attrRev), r.rev)),
	}
	member := []table.MemberOp{{Attr: attrSubs, Members: table.Set{sessionKey}}}
	if add {
		op.AddTo = member
	} else {
		op.TakeFrom = member
	}
	return op
}

func (s *Service) subscriptionOp(r *Row, sessionKey string, add bool) table.Op {
	op := table.Op{Kind: table.Delete, Key: subscriptionKey(r.Tenant, sessionKey, r.ID)}
	if !add {
		return op
	}
	op.Kind = table.Put
	op.Item = table.Attrs{attrExpires: clock.Millis(r.ExpiresAt), table.TTLAttr: r.ExpiresAt.Unix()}
	setStrings(op.Item, map[string]string{attrCallback: r.Callback, attrToken: r.Token})
	if len(r.Caps) > 0 {
		op.Item[attrCaps] = r.Caps
	}
	return op
}

// sessionOp tells the active run, or makes sure that there is none.
func sessionOp(ref session.Ref, active bool) table.Op {
	if !active {
		return table.Op{Kind: table.Check, Key: ref.MetaKey(), If: table.Lacks(table.P(session.AttrActive))}
	}
	return table.Op{
		Kind: table.Update, Key: ref.MetaKey(),
		Add: []table.AddOp{{Path: table.P(session.AttrSubRev), N: 1}},
		If:  table.Has(table.P(session.AttrActive)),
	}
}

// Subscribers lists who gets the events of a session: its own subscribers and the
// tenant-wide ones, each once, by id. Those whose token is gone are not among them, and
// end.
func (s *Service) Subscribers(ctx context.Context, tenant, sessionKey string) ([]Subscriber, error) {
	type answer struct {
		list []Subscriber
		err  error
	}
	wide := make(chan answer, 1) // both are asked at once: it is one wait of a run's start
	go func() {
		list, err := s.list(ctx, subscriptionPK(tenant, AllSessions))
		wide <- answer{list, err}
	}()
	list, err := s.list(ctx, subscriptionPK(tenant, sessionKey))
	w := <-wide
	if err == nil {
		err = w.err
	}
	if err != nil {
		return nil, fmt.Errorf("read subscribers: %w", err)
	}
	list = append(list, w.list...)
	slices.SortStableFunc(list, func(a, b Subscriber) int { return strings.Compare(a.ID, b.ID) })
	list = slices.CompactFunc(list, func(a, b Subscriber) bool { return a.ID == b.ID })
	return slices.DeleteFunc(list, func(sub Subscriber) bool { return s.endRevoked(ctx, &sub) }), nil
}

func (s *Service) list(ctx context.Context, pk string) ([]Subscriber, error) {
	var out []Subscriber
	now := s.Clock.Now()
	q := table.Query{Table: table.Connections, PK: pk}
	for {
		page, err := s.Store.Query(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, it := range page.Items {
			if !expires(it).After(now) {
				continue
			}
			caps, _ := it.Attrs[attrCaps].([]string)
			out = append(out, Subscriber{ID: it.Key.SK, Callback: it.Attrs.Str(attrCallback), Caps: caps, token: it.Attrs.Str(attrToken)})
		}
		if page.Next == "" {
			return out, nil
		}
		q.After = page.Next
	}
}

func expires(it table.Item) time.Time { return clock.FromMillis(it.Attrs.Int(attrExpires)) }
