package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"laneway/shared/claim"
	"laneway/shared/diag"
	"laneway/shared/local"
	"laneway/shared/model/profile"
	"laneway/shared/queue"
	"laneway/shared/queueing"
	"laneway/shared/session"
	tablebolt "laneway/shared/table/bolt"
	"laneway/shared/token"
)

// storesWithin bounds finding the stores of an account, or making them.
const storesWithin = 5 * time.Minute

// openLocal opens the single-machine edition with the model that the environment
// names.
func openLocal(ctx context.Context, c localConfig) (localServer, error) {
	limits, err := local.LimitsByName(c.Limits)
	if err != nil {
		return nil, err
	}
	routes, err := modelRoutes(c)
	if err != nil {
		return nil, err
	}
	reset, err := session.ParseReset(c.Env("LANEWAY_SESSION_RESET"))
	if err != nil {
		return nil, fmt.Errorf("LANEWAY_SESSION_RESET: %w", err)
	}
	rules, err := queueing.Parse(c.Env("LANEWAY_QUEUE"))
	if err != nil {
		return nil, fmt.Errorf("LANEWAY_QUEUE: %w", err)
	}
	inbound, err := queueing.ParseInbound(c.Env("LANEWAY_INBOUND_DEBOUNCE"))
	if err != nil {
		return nil, fmt.Errorf("LANEWAY_INBOUND_DEBOUNCE: %w", err)
	}
	stuck, err := diag.ParseThresholds(c.Env("LANEWAY_STUCK_WARN_MS"), c.Env("LANEWAY_STUCK_ABORT_MS"))
	if err != nil {
		return nil, fmt.Errorf("LANEWAY_STUCK_WARN_MS, LANEWAY_STUCK_ABORT_MS: %w", err)
	}
	skip, err := profile.ParseSkipTTL(c.Env(profile.SkipVariable))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", profile.SkipVariable, err)
	}
	level := slog.LevelInfo
	if c.Quiet {
		level = slog.LevelError
	}
	log := slog.New(slog.NewTextHandler(c.Stderr, &slog.HandlerOptions{Level: level}))
	var lanes []queue.Def
	if c.Runs > 0 {
		lanes = queue.Definitions()
		for i := range lanes {
			if lanes[i].Lane == queue.Main {
				lanes[i].Concurrency = c.Runs
			}
		}
	}
	var stores *local.Stores // nil: files
	if c.Backend == backendAWS {
		octx, cancel := context.WithTimeout(ctx, storesWithin)
		defer cancel()
		if stores, err = (awsBackend{Name: c.Stack, Create: c.Create, Lanes: lanes, Log: log}).open(octx); err != nil {
			return nil, err
		}
	}
	server, err := local.Open(ctx, local.Config{
		Data: c.Data, Listen: c.Listen, Token: c.Token, Limits: limits, Workspace: c.Workspace, Shell: c.Shell, Function: c.Function, Times: claim.Times{Lease: c.Lease}, FallbackSkip: skip,
		Routes: routes, Version: version(), Log: log, Lanes: lanes, Stores: stores, Advertise: c.Advertise, Diagnostics: stuck, Reset: reset, Queue: rules, Inbound: inbound,
	})
	if errors.Is(err, tablebolt.ErrLocked) {
		return nil, fmt.Errorf("%w or by a turn with --local: \"laneway agent\" without --local talks to the gateway, --data names another directory", inUse(c.Data))
	}
	if err != nil {
		return nil, err
	}
	return server, nil
}

// inUse is the error about a data directory that another process has open.
func inUse(dir string) error {
	return fmt.Errorf("%s is in use by a running gateway", dir)
}

// openTokens opens the tokens in a data directory: in its store, or through the
// running gateway that has it open.
func openTokens(dir string) (tokenBook, func() error, error) {
	store, err := tablebolt.Open(tablebolt.Config{Path: filepath.Join(dir, "tables.db")})
	if errors.Is(err, tablebolt.ErrLocked) {
		remote, err := findControl(dir)
		if err != nil {
			return nil, nil, fmt.Errorf("%w, or by a turn with --local: try again when it has ended", inUse(dir))
		}
		return remote, func() error { return nil }, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return &token.Store{Table: store}, store.Close, nil
}
