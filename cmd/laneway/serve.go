package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"laneway/shared/token"
)

// defaultListen is where serve listens: on this machine only.
const defaultListen = "127.0.0.1:18789"

// serveCommand runs the single-machine edition.
type serveCommand struct {
	Listen    string `default:"${defaultListen}" placeholder:"ADDR" help:"Address to listen on (${default}); another interface than loopback needs a given token."`
	Data      string `type:"path" placeholder:"DIR" help:"Data directory (default: under the user's data directory)."`
	TokenFile string `type:"path" placeholder:"FILE" help:"File with the token (else OPENCLAW_GATEWAY_TOKEN, else one is made in the data directory)."`
	Limits    string `enum:"stock,apigateway" default:"stock" help:"Frame and connection limits: stock or apigateway."`
	Workspace string `type:"path" placeholder:"DIR" help:"Folder that the tools of agent main work in (default: DATA/workspace/main)."`
	Shell     bool   `default:"true" negatable:"" help:"Let agents write files and run commands, as this user (${default})."`
	Models    string `type:"path" placeholder:"FILE" help:"Configuration of model providers (default: models.json in --data, if it is there)."`
	Runs      int    `placeholder:"N" help:"Most runs at once in the main lane (default: 16)."`

	Backend   string `enum:"files,aws" default:"files" help:"Where everything is kept: files in --data, or aws: DynamoDB, SQS and S3, at AWS_ENDPOINT_URL if that is set."`
	Stack     string `default:"laneway" placeholder:"NAME" help:"With --backend aws: whose tables, queues and bucket (${default})."`
	Create    bool   `help:"With --backend aws: make what is missing of them."`
	Advertise string `placeholder:"URL" help:"With --backend aws: http address under which other processes over the same stores reach this one (default: that of --listen)."`

	// For tests, and for whoever wants to see recovery at work.
	Lease    time.Duration `hidden:"" help:"How long a writer's claim holds without renewal."`
	Function time.Duration `hidden:"" help:"How long one invocation of a runner may last."`
}

// localConfig is what a command says about the edition that it starts.
type localConfig struct {
	Data      string // directory, made if it is missing
	Listen    string
	Token     string
	Limits    string        // "", "stock" or "apigateway"
	Workspace string        // of agent main; "": in the data directory
	Shell     bool          // tools that write and run commands
	Lease     time.Duration // of claims; 0: the default
	Function  time.Duration // of an invocation; 0: no limit
	Models    string        // configuration of models; "": models.json in the data directory, if it is there
	Runs      int           // at once in the main lane; 0: the default
	Backend   string        // "", "files" or "aws"
	Stack     string        // of the backend aws
	Create    bool          // what is missing of it
	Advertise string        // address for other processes over the same stores
	Env       func(string) string
	Stderr    io.Writer
	Quiet     bool // log only what went wrong
}

// localServer is the single-machine edition, listening.
type localServer interface {
	// URL is its ws:// address.
	URL() string
	// Token is the one that clients connect with.
	Token() string
	// Tokens are those that are stored beside it.
	Tokens() *token.Store
	// Serve answers until ctx ends.
	Serve(ctx context.Context) error
	// Close gives the data directory free. It is called after Serve has returned.
	Close() error
}

// Run serves until a signal comes.
func (c *serveCommand) Run(ctx context.Context, a *app) error {
	dir, err := a.dataDir(c.Data)
	if err != nil {
		return err
	}
	token, where, err := c.token(a, dir)
	if err != nil {
		return err
	}
	server, err := a.openLocal(ctx, localConfig{
		Data: dir, Listen: c.Listen, Token: token, Limits: c.Limits, Workspace: c.Workspace, Shell: c.Shell,
		Lease: c.Lease, Function: c.Function, Runs: c.Runs, Models: c.Models,
		Backend: c.Backend, Stack: c.Stack, Create: c.Create, Advertise: c.Advertise, Env: a.env, Stderr: a.stderr,
	})
	if err != nil {
		return err
	}
	stopControl, err := serveControl(ctx, dir, server.Tokens())
	if err != nil {
		return errors.Join(err, server.Close())
	}
	url := strings.TrimSuffix(server.URL(), "/")
	fmt.Fprintf(a.stderr, "%s %s\n", a.paint(bold, "listening on"), url)
	data := dir
	if c.Backend == backendAWS {
		data = "the tables of " + c.Stack
	}
	fmt.Fprintf(a.stderr, "data in %s, token from %s\n", data, where)
	fmt.Fprintf(a.stderr, "try: laneway agent --url %s -m \"hello\"\n", url)
	err = a.untilSignal(ctx, server.Serve)
	if code, ok := errors.AsType[exitError](err); ok && int(code) == exitTerminated {
		err = nil // how a service is stopped is no failure
	}
	return errors.Join(err, stopControl(), server.Close())
}

// token is the token to serve with, and where it came from.
func (c *serveCommand) token(a *app, dir string) (token, where string, err error) {
	if c.TokenFile != "" {
		token, err = storedToken(c.TokenFile)
		if err == nil && token == "" {
			err = fmt.Errorf("--token-file %s: %w", c.TokenFile, os.ErrNotExist)
		}
		return token, c.TokenFile, err
	}
	if token := a.env("OPENCLAW_GATEWAY_TOKEN"); token != "" {
		return token, "OPENCLAW_GATEWAY_TOKEN", nil
	}
	if !loopbackAddress(c.Listen) {
		return "", "", fmt.Errorf("--listen %s is reachable from other machines: give a token with OPENCLAW_GATEWAY_TOKEN or --token-file", c.Listen)
	}
	path := filepath.Join(dir, tokenFile)
	token, err = storedToken(path)
	if err == nil && token == "" {
		token, err = makeToken(path)
	}
	return token, path, err
}

// loopbackAddress says whether only this machine can reach an address.
func loopbackAddress(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip := net.ParseIP(cmp.Or(host, "0.0.0.0"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
