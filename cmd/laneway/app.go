package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"laneway/shared/clock"
	"laneway/test/fault"
)

// app is all of the outside world that a command may touch, so that commands can be
// run in tests without a process around them.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// Whether a person looks at it: then text is streamed, progress shown, colour used.
	stdoutTerminal, stderrTerminal bool
	env                            func(string) string
	clock                          clock.Clock
	signals                        <-chan os.Signal
	openLocal                      func(context.Context, localConfig) (localServer, error)
	openDead                       func(ctx context.Context, stack string) (deadLetters, error)
	openTokens                     func(data string) (book tokenBook, closeBook func() error, err error)
	runFault                       func(fault.Options, io.Writer) bool
}

// commands is the grammar of the command line.
type commands struct {
	Agent    agentCommand     `cmd:"" help:"Send one message to an agent and print the answer."`
	Wait     waitCommand      `cmd:"" help:"Wait for a run to end and print its answer."`
	Cost     costCommand      `cmd:"" help:"Say what a run cost."`
	Sessions sessionsCommands `cmd:"" help:"Look at conversations."`
	Runs     runsCommands     `cmd:"" help:"Look at runs that are not over, and stop them."`
	Cron     cronCommands     `cmd:"" help:"Keep jobs that run at a time."`
	Token    tokenCommands    `cmd:"" help:"Manage the tokens that clients connect with."`
	Models   modelsCommands   `cmd:"" help:"Check and store the configuration of model providers."`
	DLQ      dlqCommands      `cmd:"" name:"dlq" help:"Look at wake-ups that failed too often."`
	Serve    serveCommand     `cmd:"" help:"Run a gateway on this machine."`
	Fault    faultCommand     `cmd:"" help:"Try the durable core under deaths, freezes and lost messages."`

	Version kong.VersionFlag `short:"V" help:"Print the version and exit."`
}

// exitError is an exit code whose reason has been told already.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// The exit codes.
const (
	exitOK         = 0
	exitFailure    = 1
	exitInterrupt  = 128 + int(syscall.SIGINT)
	exitTerminated = 128 + int(syscall.SIGTERM)
)

// signalled is the exit code after a signal.
func signalled(s os.Signal) exitError {
	if s == syscall.SIGTERM {
		return exitError(exitTerminated)
	}
	return exitError(exitInterrupt)
}

// run parses and runs a command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	var c commands
	ended := false // --help and --version end it without a command
	parser, err := kong.New(&c,
		kong.Name("laneway"),
		kong.Description("Agents over WebSocket: a message in, a streamed answer out, durable and in order."),
		kong.Writers(a.stdout, a.stderr),
		kong.Exit(func(int) { ended = true }),
		kong.Vars{"version": version() + "\n", "defaultURL": defaultURL, "defaultListen": defaultListen},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(a),
	)
	if err != nil {
		return a.fail(err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if ended {
		return exitOK
	}
	if err != nil {
		a.fail(err)
		fmt.Fprintf(a.stderr, "run \"%s --help\" for what there is\n", commandOf(err))
		return exitFailure
	}
	if err := command.Run(); err != nil {
		return a.fail(err)
	}
	return exitOK
}

// commandOf is the command that a line meant which was not understood, as far as it was.
func commandOf(err error) string {
	name := []string{"laneway"}
	if p, ok := errors.AsType[*kong.ParseError](err); ok && p.Context != nil {
		for _, step := range p.Context.Path {
			if step.Command != nil {
				name = append(name, step.Command.Name)
			}
		}
	}
	return strings.Join(name, " ")
}

// fail tells an error, unless it was told, and gives its exit code.
func (a *app) fail(err error) int {
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	fmt.Fprintf(a.stderr, "%s %v\n", a.paint(red, "laneway:"), err)
	return exitFailure
}

// version is that of the module, or of the commit that it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return "dev"
}

// colour is the number of a text attribute of terminals.
type colour int

const (
	bold colour = 1
	dim  colour = 2
	red  colour = 31
)

// paint colours a text for standard error, where a person looks at it and has not
// said NO_COLOR.
func (a *app) paint(c colour, text string) string {
	if !a.stderrTerminal || a.env("NO_COLOR") != "" {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", int(c), text)
}
