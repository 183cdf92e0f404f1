package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"laneway/shared/protocol"
	"laneway/shared/token"
)

// tokenCommands manage the tokens of the gateway of this machine, beside the one
// that it was started with.
type tokenCommands struct {
	Add  tokenAddCommand  `cmd:"" help:"Make a token and print it, once."`
	List tokenListCommand `cmd:"" help:"List the tokens: never the secrets."`
	Rm   tokenRmCommand   `cmd:"" help:"Take a token away."`
}

// tokenBook is where the tokens are kept.
type tokenBook interface {
	Add(ctx context.Context, g token.Grant) (secret string, err error)
	List(ctx context.Context) ([]token.Grant, error)
	Remove(ctx context.Context, id string) error
}

// withTokens opens the book for one command.
func (a *app) withTokens(data string, do func(tokenBook) error) error {
	dir, err := a.dataDir(data)
	if err != nil {
		return err
	}
	book, closeBook, err := a.openTokens(dir)
	if err != nil {
		return err
	}
	return errors.Join(do(book), closeBook())
}

// scopes that a token may have; they are what methods ask for.
var allScopes = []string{
	protocol.ScopeAdmin, protocol.ScopeRead, protocol.ScopeWrite, protocol.ScopeApprovals,
	protocol.ScopeQuestions, protocol.ScopePairing, protocol.ScopeTalk,
}

type tokenAddCommand struct {
	Name    string   `arg:"" help:"What it is for, as sessions and lists will show it."`
	Tenant  string   `default:"default" placeholder:"NAME" help:"Whose sessions it opens (${default})."`
	Scopes  []string `placeholder:"SCOPE,…" help:"What it allows, such as operator.read,operator.write (default: everything)."`
	Expires string   `placeholder:"TIME" help:"How long it is good for, as in 12h or 90d (default: until it is removed)."`
	Data    string   `type:"path" placeholder:"DIR" help:"Data directory (default: under the user's data directory)."`
}

// Run makes a token. It alone goes to standard output.
func (c *tokenAddCommand) Run(ctx context.Context, a *app) error {
	g := token.Grant{Name: c.Name, Tenant: c.Tenant, Scopes: c.Scopes}
	for _, s := range c.Scopes {
		if !slices.Contains(allScopes, s) {
			return fmt.Errorf("--scopes: there is no %q; there are %s", s, strings.Join(allScopes, ", "))
		}
	}
	if c.Expires != "" {
		d, err := duration(c.Expires)
		if err != nil {
			return fmt.Errorf("--expires: %w", err)
		}
		g.Expires = a.clock.Now().Add(d)
	}
	return a.withTokens(c.Data, func(book tokenBook) error {
		secret, err := book.Add(ctx, g)
		if err != nil {
			return err
		}
		fmt.Fprintln(a.stdout, secret)
		fmt.Fprintf(a.stderr, "token %q of tenant %q, %s; it is not shown again\n", g.Name, g.Tenant, until(g.Expires))
		return nil
	})
}

// duration is a time span, with days as well.
func duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is no time span: want 30m, 12h, 90d", s)
	}
	return d, nil
}

func until(t time.Time) string {
	if t.IsZero() {
		return "until it is removed"
	}
	return "until " + t.Local().Format("2006-01-02 15:04")
}

type tokenListCommand struct {
	Data string `type:"path" placeholder:"DIR" help:"Data directory (default: under the user's data directory)."`
	JSON bool   `name:"json" help:"Print a JSON object."`
}

// tokenRow is a token as JSON: in the list, and between a command and the gateway.
type tokenRow struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Tenant  string     `json:"tenant"`
	Scopes  []string   `json:"scopes"` // empty: everything
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires"`
}

func rowOf(g token.Grant) tokenRow {
	r := tokenRow{ID: g.ID, Name: g.Name, Tenant: g.Tenant, Scopes: append([]string{}, g.Scopes...), Created: g.Created}
	if !g.Expires.IsZero() {
		r.Expires = &g.Expires
	}
	return r
}

func (r tokenRow) grant() token.Grant {
	g := token.Grant{ID: r.ID, Name: r.Name, Tenant: r.Tenant, Scopes: r.Scopes, Created: r.Created}
	if r.Expires != nil {
		g.Expires = *r.Expires
	}
	return g
}

func rowsOf(grants []token.Grant) []tokenRow {
	rows := []tokenRow{}
	for _, g := range grants {
		rows = append(rows, rowOf(g))
	}
	return rows
}

// Run lists tokens.
func (c *tokenListCommand) Run(ctx context.Context, a *app) error {
	return a.withTokens(c.Data, func(book tokenBook) error {
		grants, err := book.List(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return a.printJSON(map[string]any{"tokens": rowsOf(grants)})
		}
		if len(grants) == 0 {
			fmt.Fprintln(a.stderr, `no tokens beside the gateway's own: "laneway token add NAME" makes one`)
			return nil
		}
		w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tNAME\tTENANT\tSCOPES\tVALID")
		for _, g := range grants {
			scopes := "all"
			if len(g.Scopes) > 0 {
				scopes = strings.Join(g.Scopes, ",")
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", g.ID, g.Name, g.Tenant, scopes, until(g.Expires))
		}
		return w.Flush()
	})
}

type tokenRmCommand struct {
	ID   string `arg:"" help:"Id of the token, as token list prints it."`
	Data string `type:"path" placeholder:"DIR" help:"Data directory (default: under the user's data directory)."`
}

// Run takes a token away.
func (c *tokenRmCommand) Run(ctx context.Context, a *app) error {
	return a.withTokens(c.Data, func(book tokenBook) error {
		err := book.Remove(ctx, c.ID)
		if errors.Is(err, token.ErrUnknown) {
			return fmt.Errorf("there is no token %s", c.ID)
		}
		if err == nil {
			fmt.Fprintln(a.stderr, "removed; runs that it started end within 10 seconds, connections that it let in are refused within a minute")
		}
		return err
	})
}
