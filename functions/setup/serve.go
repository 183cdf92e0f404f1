package setup

import (
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
)

// Main is a function's main: it builds the handler and serves events with it. What
// is wrong with the environment is in the log, and the process ends.
func Main(build func(*Function) (handler any, err error)) {
	f, err := Start()
	var handler any
	if err == nil {
		handler, err = build(f)
	}
	if err != nil {
		slog.Error("function does not start", "err", err)
		os.Exit(1)
	}
	lambda.Start(handler)
}
