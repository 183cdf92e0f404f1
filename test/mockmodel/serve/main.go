// Command serve runs the scripted model provider by itself, for tests that are not
// written in Go. It prints its base URL and serves until it is interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"laneway/test/mockmodel"
)

func main() {
	address := flag.String("listen", "127.0.0.1:0", "where to listen")
	flag.Parse()
	if err := run(*address); err != nil {
		fmt.Fprintln(os.Stderr, "mockmodel:", err)
		os.Exit(1)
	}
}

func run(address string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := mockmodel.Start(address)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, s.URL)
	<-ctx.Done()
	return s.Close()
}
