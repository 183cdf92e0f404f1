package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"laneway/shared/protocol"
)

// costCommand says what a run cost.
type costCommand struct {
	RunID string `arg:"" name:"run" help:"Id of the run: its idempotency key."`
	JSON  bool   `name:"json" help:"Print the gateway's answer as one JSON object."`

	gatewayFlags
}

// Run prints a row for everything that the run used.
func (c *costCommand) Run(ctx context.Context, a *app) error {
	var raw json.RawMessage
	if err := c.ask(ctx, a, "runs.cost", protocol.RunsCostParams{RunID: c.RunID}, &raw); err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(raw)
	}
	var m protocol.RunCost
	if err := decode(raw, &m); err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "USED\tOF\tUSD\t")
	for _, name := range slices.Sorted(maps.Keys(m.Used)) {
		price := "-" // it is counted, and costs nothing by itself
		if usd, ok := m.Items[name]; ok {
			price = fmt.Sprintf("%.8f", usd)
		}
		fmt.Fprintf(w, "%.4g\t%s\t%s\t\n", m.Used[name], name, price)
	}
	if u := m.Usage; u != nil {
		price := "-"
		if usd, ok := m.Items["tokens"]; ok {
			price = fmt.Sprintf("%.8f", usd)
		}
		fmt.Fprintf(w, "%d\ttokens (%s/%s)\t%s\t\n", u.TotalTokens, m.Provider, m.Model, price)
	}
	fmt.Fprintf(w, "\tall\t%.8f\t\n", m.USD)
	if err := w.Flush(); err != nil {
		return err
	}
	if !m.Ended {
		fmt.Fprintln(a.stderr, "the run has not ended: this is what it has used so far")
	}
	if len(m.Unpriced) > 0 {
		fmt.Fprintf(a.stderr, "without a price in the list of %s: %s\n", m.Prices, strings.Join(m.Unpriced, ", "))
	}
	return nil
}
