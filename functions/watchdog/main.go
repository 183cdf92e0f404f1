// Command watchdog is the function behind the rule that fires every minute: it
// wakes sessions whose work nobody does (A2).
package main

import (
	"log"

	"github.com/aws/aws-lambda-go/lambda"

	"laneway/functions/adapter"
	"laneway/functions/setup"
)

func main() {
	f, err := setup.Start()
	if err != nil {
		log.Fatal(err)
	}
	w := &adapter.Watchdog{Lanes: f.Core.Lanes, Clock: f.Core.Clock, Log: f.Log}
	lambda.Start(w.Handle)
}
