// Command sim plays what one stack does under the messages of 1,000, 100,000 and 10
// million users, and prints how long they wait, what they need at once, what they cost
// and which quota is in the way first.
//
// It is a simulation by events, with the limits that AWS and the stack's settings set:
// lanes whose sessions keep their order, caps, concurrency and how fast it grows,
// throttles with clients that try again. What it takes for given is in measured.go, the
// quotas are in quotas.go.
//
// Guarantee: the same seed and constants give the same bytes.
//
//	go run ./test/load/sim [-seed N] [-into docs/scale.md]
package main

import (
	"flag"
	"fmt"
	"os"

	"laneway/test/load/document"
)

func main() {
	seed := flag.Uint64("seed", 1, "of what is random")
	page := flag.String("into", "", "a Markdown file whose block scale is replaced by the tables")
	flag.Parse()
	tables := report(scenarios(), *seed, func(what string) { fmt.Fprintln(os.Stderr, "scale:", what) })
	_, err := fmt.Fprintln(os.Stdout, tables)
	if err == nil && *page != "" {
		err = document.Replace(*page, "scale", tables)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}
