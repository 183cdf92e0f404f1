package main

import (
	"io"
	"os/signal"

	"laneway/test/fault"
)

// faultCommand runs the fault kit on this machine: nothing of it leaves the process.
type faultCommand struct {
	Seeds     uint64  `default:"1000" help:"How many simulations; with --mutations, the most for each profile."`
	Seed      *uint64 `help:"Run this one, and print all that happens in it."`
	From      uint64  `help:"The first seed."`
	Profile   string  `help:"What the scenarios are made of; else each seed has its own."`
	Mutation  string  `help:"Make the product wrong in this way, to see that it is noticed."`
	Mutations bool    `help:"Try every such way, and print what noticed it."`
}

// Run implements the command.
func (c *faultCommand) Run(a *app) error {
	o := fault.Options{
		Seeds: c.Seeds, First: c.From, Profile: c.Profile, Mutation: c.Mutation, Mutations: c.Mutations, Progress: a.stderr,
	}
	if c.Seed != nil {
		o.First, o.One = *c.Seed, true
	}
	if err := o.Check(); err != nil {
		return err
	}
	if !a.runFault(o, a.stdout) {
		return exitError(exitFailure)
	}
	return nil
}

// runFault runs the kit in this process, and ends it.
func runFault(o fault.Options, out io.Writer) bool {
	signal.Reset() // nothing is left to be done after an interrupt
	fault.Main(o, out)
	return true
}
