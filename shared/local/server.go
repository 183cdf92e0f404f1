package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"laneway/functions/adapter"
	"laneway/shared/agent"
	"laneway/shared/cron"
	"laneway/shared/diag"
	"laneway/shared/model/route"
	"laneway/shared/push"
	pushlocal "laneway/shared/push/local"
	"laneway/shared/queue"
	"laneway/shared/session"
	"laneway/shared/token"
	"laneway/shared/wiring"
)

// Server is the edition, listening.
type Server struct {
	cfg    Config
	core   *wiring.Core
	watch  *diag.Service
	ticker *ticker
	stores *Stores
	conns  *pushlocal.Registry
	poster push.Poster // conns, or peers
	peers  *peers      // nil: the stores are of this process alone
	socket *adapter.Socket
	wake   queue.Handler
	ln     net.Listener
	tokens *token.Store

	uploads *uploads
}

// httpURL is the address of this process for what is no WebSocket.
func (s *Server) httpURL() string {
	return cmp.Or(s.cfg.Advertise, "http://"+s.ln.Addr().String())
}

// Open opens the stores, ends what a predecessor held, and listens. Nothing is served
// before Serve. Stores that were given are closed with the server, also where Open
// fails.
func Open(ctx context.Context, c Config) (_ *Server, err error) {
	s := &Server{stores: c.Stores}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if c, err = c.withDefaults(); err != nil {
		return nil, err
	}
	s.cfg = c
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if s.stores == nil {
		if s.stores, err = files(c); err != nil {
			return nil, err
		}
	}
	if err := s.stores.check(); err != nil {
		return nil, err
	}
	if s.ln, err = (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen); err != nil {
		return nil, err
	}
	if err := s.build(ctx); err != nil {
		return nil, err
	}
	if !s.stores.Shared {
		if _, err := s.core.Lanes.Recover(ctx); err != nil {
			return nil, fmt.Errorf("recover: %w", err)
		}
	}
	return s, nil
}

func (s *Server) build(ctx context.Context) (err error) {
	c := s.cfg
	s.conns = pushlocal.New(pushlocal.Config{Limit: max(c.Limits.Out, 0)})
	s.poster = s.conns
	if s.stores.Shared {
		s.peers = newPeers(s.conns, s.httpURL(), c.Token, c.Clock)
		s.poster = s.peers
	}
	s.ticker = newTicker()
	s.uploads = newUploads(c.Token, s.httpURL, s.stores.Blobs, c.Clock)
	s.core, err = wiring.Build(
		wiring.Ports{Store: s.stores.Table, Queue: s.stores.Queue, Timers: s.stores.Timers, Blobs: s.stores.Blobs, Uploads: s.uploads, Poster: s.poster, Dead: s.stores.Dead},
		wiring.Settings{
			Times: c.Times, Clock: c.Clock, Log: c.Log, Pacing: c.Limits.Pacing, MaxFrame: c.Limits.Out, MaxPayload: c.Limits.Message,
			ConnLife: connLife(c.Limits), Version: c.Version, Diagnostics: c.Diagnostics, Reset: c.Reset, QueueRules: c.Queue, Inbound: c.Inbound,
			Cron: wiring.CronSettings{Scheduler: s.ticker, Zone: c.Zone, HTTP: cron.AnyClient()},
		})
	if err != nil {
		return err
	}
	if s.watch, err = s.core.Watch(c.Lanes, nil); err != nil {
		return err
	}
	agents := c.Agents
	if !hasMain(agents) {
		ws := c.Workspace
		if ws == "" {
			ws = filepath.Join(c.Data, "workspace", session.DefaultAgent)
		}
		agents = append([]agent.Spec{{ID: session.DefaultAgent, Name: "main", Workspace: ws}}, agents...)
	}
	var routes *route.Set
	if c.Routes != nil {
		if routes, err = c.Routes(ctx, s.stores.Table); err != nil {
			return err
		}
		c.Model, c.Models, c.Retry = routes.Primary(), routes.Infos(), routes.Retry(c.Retry)
	}
	set, err := agent.New(agent.Config{Agents: agents, Model: c.Model, Models: c.Models, Routes: routes, Clock: c.Clock, Zone: c.Zone, Shell: c.Shell})
	if err != nil {
		return err
	}
	s.tokens = &token.Store{Table: s.stores.Table, Clock: c.Clock, Fixed: []string{c.Token}}
	gateway, err := s.core.Gateway(s.tokens, set.Directory())
	if err != nil {
		return err
	}
	s.socket = &adapter.Socket{Gateway: gateway, Poster: s.poster}
	if s.peers != nil {
		s.socket.Callback = s.peers.self
	}
	runner, err := s.core.Runner(wiring.RunnerConfig{
		Models: set, Agents: set, Chains: set, Preferred: set.Preferred, Retry: c.Retry, StepNeed: c.Function / 10, Reserve: c.Function / 8,
		FallbackSkip: c.FallbackSkip,
	})
	if err != nil {
		return err
	}
	if c.Runner != nil {
		runner = c.Runner(runner)
	}
	s.wake = s.invocation(adapter.Wake(runner))
	return nil
}

// invocation gives a handler the time limit of a function, where one is set.
func (s *Server) invocation(h queue.Handler) queue.Handler {
	if s.cfg.Function == 0 {
		return h
	}
	return func(ctx context.Context, m queue.Message) error {
		ctx, cancel := context.WithTimeout(ctx, s.cfg.Function)
		defer cancel()
		return h(ctx, m)
	}
}

// connLife is how long a connection's record counts: here the connection itself
// says when it ends, and a predecessor's are swept by age.
func connLife(l Limits) time.Duration {
	if l.Life > 0 {
		return l.Life
	}
	return 365 * 24 * time.Hour
}

func hasMain(agents []agent.Spec) bool {
	for _, a := range agents {
		if a.ID == session.DefaultAgent {
			return true
		}
	}
	return false
}

// URL is the address that clients connect to.
func (s *Server) URL() string { return "ws://" + s.ln.Addr().String() + "/" }

// Token is the token that it was opened with.
func (s *Server) Token() string { return s.cfg.Token }

// Tokens are the stored tokens.
func (s *Server) Tokens() *token.Store { return s.tokens }

// shutdown is how long connections have to end by themselves.
const shutdown = 2 * time.Second

// Serve answers until ctx ends, then ends what it started: runs that are at work
// write a checkpoint and go on at the next start.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make(chan error, 2)
	front := newFront(ctx, s)
	srv := &http.Server{Handler: front, ReadHeaderTimeout: 15 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	wg.Go(func() {
		if err := srv.Serve(s.ln); !errors.Is(err, http.ErrServerClosed) {
			errs <- err
			cancel()
		}
	})
	wg.Go(func() {
		if err := s.stores.Receive(ctx, s.wake, s.timer); err != nil {
			errs <- err
			cancel()
		}
	})
	wg.Go(func() { s.tick(ctx) })
	wg.Go(func() { s.ticker.run(ctx, s) })
	<-ctx.Done()
	front.shutdown()
	last, stop := context.WithTimeout(context.Background(), shutdown)
	defer stop()
	err := srv.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}
	front.wait()
	wg.Wait()
	close(errs)
	for e := range errs {
		err = errors.Join(err, e)
	}
	return err
}

func (s *Server) timer(ctx context.Context, m queue.Message) error {
	return s.core.Notify.HandleTimer(ctx, m.Body)
}

// Close gives the stores free. It is called after Serve has returned.
func (s *Server) Close() error {
	var err error
	if s.ln != nil {
		if e := s.ln.Close(); e != nil && !errors.Is(e, net.ErrClosed) {
			err = e
		}
	}
	if s.peers != nil {
		s.peers.close()
	}
	if s.stores != nil && s.stores.Close != nil {
		err = errors.Join(err, s.stores.Close())
	}
	return err
}
