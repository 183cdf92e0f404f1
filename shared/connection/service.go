package connection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"laneway/shared/claim"
	"laneway/shared/clock"
	"laneway/shared/id"
	"laneway/shared/push"
	"laneway/shared/table"
)

// Service keeps the rows.
type Service struct {
	Store table.Store
	Clock clock.Clock
	// Life is how long a row counts; zero: the constant Life. An edition that does
	// not end connections by itself gives more.
	Life time.Duration
	// IDs gives ids of writes; nil: random ones.
	IDs id.Source
	// Tokens says whether tokens are still granted; nil: they always are.
	Tokens Tokens
	// Poster ends connections whose token is gone; nil: they end by themselves.
	Poster push.Poster
	// Window bounds the tries of a write that meets a conflict or throttling; zero:
	// 4 s, which leaves a gateway function time to answer.
	Window time.Duration
}

func (s *Service) write(ctx context.Context, ops ...table.Op) error {
	_, err := claim.Write(ctx, s.Store, s.Clock, cmp.Or(s.Window, 4*time.Second), ops...)
	return err
}

func (s *Service) newID() string {
	if s.IDs != nil {
		return s.IDs()
	}
	return id.UUID()
}

// Open stores a connection that has just been made, in state pending. ID, Callback
// and Nonce are taken from r. Storing the same connection again, as a repeated
// $connect does, changes nothing; if it is ready by then the error is ErrState.
func (s *Service) Open(ctx context.Context, r Row) error {
	now := s.Clock.Now()
	exp := now.Add(cmp.Or(s.Life, Life))
	a := table.Attrs{
		attrState: string(Pending), attrCreated: clock.Millis(now), attrExpires: clock.Millis(exp),
		attrRev: int64(1), table.TTLAttr: exp.Unix(),
	}
	setStrings(a, map[string]string{attrCallback: r.Callback, attrNonce: r.Nonce})
	// Ids are not used twice while a connection lives; a row that expired is of
	// another life.
	err := s.write(ctx, table.Op{
		Kind: table.Put, Key: rowKey(r.ID), Item: a,
		If: table.Any(table.NotExists(), table.Less(table.P(attrExpires), clock.Millis(now))),
	})
	if ce, ok := table.Failed(err); ok {
		if ce.Found != nil && ce.Found.Attrs.Str(attrState) == string(Pending) && ce.Found.Attrs.Str(attrNonce) == r.Nonce {
			return nil
		}
		return ErrState
	}
	if err != nil {
		return fmt.Errorf("store connection: %w", err)
	}
	return nil
}

// Ready is the one step from pending to ready (K1). ErrGone: the connection ended
// first; ErrState: it is ready already.
func (s *Service) Ready(ctx context.Context, connectionID string, p Principal, c Client) error {
	now := s.Clock.Now()
	wid := s.newID()
	op := table.Op{
		Kind: table.Update, Key: rowKey(connectionID),
		Set: []table.SetOp{
			{Path: table.P(attrState), Value: string(Ready)},
			{Path: table.P(attrTenant), Value: p.Tenant},
			{Path: table.P(attrWrite), Value: wid},
		},
		Add: []table.AddOp{{Path: table.P(attrRev), N: 1}},
		If: table.All(
			table.Equal(table.P(attrState), string(Pending)),
			table.Greater(table.P(attrExpires), clock.Millis(now)),
		),
	}
	rest := table.Attrs{}
	setStrings(rest, map[string]string{
		attrRole: p.Role, attrDevice: p.DeviceID, attrName: p.Name, attrToken: p.Token, attrClient: c.ID, attrMode: c.Mode,
	})
	if len(p.Scopes) > 0 {
		rest[attrScopes] = p.Scopes
	}
	if len(c.Caps) > 0 {
		rest[attrCaps] = c.Caps
	}
	if c.Protocol != 0 {
		rest[attrProtocol] = c.Protocol
	}
	for n, v := range rest {
		op.Set = append(op.Set, table.SetOp{Path: table.P(n), Value: v})
	}
	err := s.write(ctx, op)
	if ce, ok := table.Failed(err); ok {
		switch found := ce.Found; {
		case found == nil || found.Attrs.Int(attrExpires) <= clock.Millis(now):
			return ErrGone
		case ce.Ambiguous && found.Attrs.Str(attrWrite) == wid:
			return nil // the answer of an earlier try was lost
		default:
			return ErrState
		}
	}
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return nil
}

// Load reads a connection; ErrGone where it is absent or expired.
func (s *Service) Load(ctx context.Context, connectionID string) (Row, error) {
	it, err := s.Store.Get(ctx, rowKey(connectionID))
	if errors.Is(err, table.ErrNotFound) {
		return Row{}, ErrGone
	}
	if err != nil {
		return Row{}, fmt.Errorf("read connection: %w", err)
	}
	r := decode(&it)
	if !r.ExpiresAt.After(s.Clock.Now()) {
		return Row{}, ErrGone
	}
	return r, nil
}

// Find reads a connection that a caller of this tenant named; one of another
// tenant, or one that is not ready, is ErrGone (K2).
func (s *Service) Find(ctx context.Context, tenant, connectionID string) (Row, error) {
	r, err := s.Load(ctx, connectionID)
	if err == nil && (r.State != Ready || r.Tenant != tenant) {
		return Row{}, ErrGone
	}
	return r, err
}

// maxOps is how many deletions go in one transaction beside the row itself.
const maxOps = 98

// Close removes a connection with its subscriptions; of one that is gone it does
// nothing. The row goes last and only as it was read, so that a subscription in
// between is found too, and a crash leaves a row from which Close can begin again.
func (s *Service) Close(ctx context.Context, connectionID string) error {
	for {
		it, err := s.Store.Get(ctx, rowKey(connectionID))
		if errors.Is(err, table.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read connection: %w", err)
		}
		r := decode(&it)
		var ops []table.Op
		for _, key := range r.Subscriptions {
			ops = append(ops, table.Op{Kind: table.Delete, Key: subscriptionKey(r.Tenant, key, r.ID)})
		}
		for len(ops) > maxOps {
			if err := s.write(ctx, ops[:maxOps]...); err != nil {
				return fmt.Errorf("remove subscriptions: %w", err)
			}
			ops = ops[maxOps:]
		}
		ops = append(ops, table.Op{
			Kind: table.Delete, Key: rowKey(r.ID),
			If: table.Any(table.NotExists(), table.Equal(table.P(attrRev), r.rev)),
		})
		err = s.write(ctx, ops...)
		if err == nil {
			return nil
		}
		if !errors.Is(err, table.ErrCondition) {
			return fmt.Errorf("remove connection: %w", err)
		}
	}
}

func setStrings(a table.Attrs, m map[string]string) {
	for n, v := range m {
		if v != "" {
			a[n] = v
		}
	}
}
