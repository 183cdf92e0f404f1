package main

import (
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// NewRunner builds the function that runs turns, behind the lanes. It sends to the
// lanes that feed it, one wake-up for each long step or waiting run; recursion
// detection would take that for a loop and stop it after 16.
func NewRunner(scope constructs.Construct, parts *Parts) Function {
	r := constructs.NewConstruct(scope, jsii.String("Runner"))
	f := parts.NewFunction(r, Runner, FunctionProps{Recursive: true})
	parts.Lanes.Feed(f, parts.Config)
	return f
}
