// Command laneway talks to agents and serves them: one turn from the command line,
// a gateway on one machine, and what is needed to look after both.
//
// It guarantees what scripts build on: standard output carries the answer and
// nothing else, everything about it goes to standard error, and the exit code is 0
// for success, 1 for any failure, 130 or 143 after an interrupt or a termination.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/charmbracelet/x/term"

	"laneway/shared/clock"
)

func main() {
	signals := make(chan os.Signal, 2) // the second one is "now, really"
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	a := &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		stdoutTerminal: term.IsTerminal(os.Stdout.Fd()),
		stderrTerminal: term.IsTerminal(os.Stderr.Fd()),
		env:            os.Getenv,
		clock:          clock.System{},
		signals:        signals,
		openLocal:      openLocal,
		openTokens:     openTokens,
		openDead:       openDead,
		runFault:       runFault,
	}
	os.Exit(a.run(context.Background(), os.Args[1:]))
}
