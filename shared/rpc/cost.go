package rpc

import (
	"context"
	"errors"

	"laneway/shared/cost"
	"laneway/shared/meter"
	"laneway/shared/protocol"
	"laneway/shared/run"
)

// runsCost says what a run cost, or has cost so far: what it used by what that is
// billed by, and the price of each by a dated list. Of attempts that died it is not
// known, so the sum is a lower bound where a run had some.
func (g *Gateway) runsCost(ctx context.Context, r *Request) error {
	p, perr := protocol.Decode[protocol.RunsCostParams](r.Method, r.Params)
	if perr != nil {
		return perr
	}
	st, err := run.Load(ctx, g.Store, run.RefOf(r.Tenant(), p.RunID))
	if errors.Is(err, run.ErrUnknown) {
		return protocol.Invalid("No run found: " + p.RunID)
	}
	if err != nil {
		return err
	}
	c := st.Counted()
	u := cost.Used{Counts: c.Used, Tokens: c.Usage}
	out := protocol.RunCost{RunID: st.RunID, SessionKey: st.SessionKey, Ended: st.Done(), Attempts: st.Attempt}
	if o := st.Outcome; o != nil {
		u.Provider, u.Model, u.Price = o.Provider, o.Model, o.TokenPrice
		out.Provider, out.Model, out.DurationMs = o.Provider, o.Model, o.DurationMs
	} else {
		u.Counts = cost.Sum(c.Used, cost.Accept)
	}
	m := cost.Of(u)
	out.USD, out.CloudUSD, out.Items, out.Unpriced, out.Prices = m.USD, m.Cloud, m.Items, m.Unpriced, m.Prices
	out.Used, out.Usage = wireCounts(u.Counts), run.WireUsage(&c.Usage)
	return r.Reply(out)
}

func wireCounts(counts map[meter.Name]float64) map[string]float64 {
	out := make(map[string]float64, len(counts))
	for name, n := range counts {
		out[string(name)] = n
	}
	return out
}
