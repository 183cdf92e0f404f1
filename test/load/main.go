// Command load measures `laneway serve`, and beside it the stock gateway, with the same
// model provider and the same client on the same machine, and prints one Markdown table
// of the figures that the design sets budgets for.
//
// Guarantees: what is compared is measured turn about, so that the machine's other work
// falls on both; each step is bounded in time and says how far it came; only 127.0.0.1
// is used; all processes have ended when it returns. A figure that was not measured is
// shown as such and never counts as met.
//
//	go run ./test/load -laneway PATH [-stock DIR -node PATH]
//
// `make bench` builds and installs what it needs.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"laneway/test/load/gateway"
	"laneway/test/load/provider"
)

func main() {
	var o options
	flag.StringVar(&o.laneway, "laneway", "", "the laneway binary")
	flag.StringVar(&o.stock, "stock", "", "node_modules with the stock gateway; empty: laneway alone")
	flag.StringVar(&o.node, "node", "node", "node 24, for the stock gateway")
	flag.Float64Var(&o.scale, "scale", 1, "how much of each step is done; less is quicker and noisier")
	document := flag.String("into", "", "a Markdown file whose table is replaced by the one that is measured")
	only := flag.String("only", "", "steps, comma separated; empty: all")
	flag.Parse()
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	// The client and the provider are what measures: on a machine that is full they
	// must not wait for each other where the system would let one of them run.
	runtime.GOMAXPROCS(max(4, 2*runtime.NumCPU()))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var table strings.Builder
	err := run(ctx, o, io.MultiWriter(os.Stdout, &table), os.Stderr)
	stop()
	if err == nil && *document != "" {
		err = into(*document, table.String())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	laneway, stock, node string
	scale                float64
	only                 []string
}

// run measures and prints.
func run(ctx context.Context, o options, table, progress io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "laneway-load-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p, err := provider.Start()
	if err != nil {
		return err
	}
	defer func() {
		if e := p.Close(); err == nil {
			err = e
		}
	}()
	b := &bench{options: o, provider: p, dir: dir, progress: progress, begun: time.Now()}
	defer b.stop()
	if err := b.start(ctx); err != nil {
		return err
	}
	b.busy = gateway.Busy() - gateway.Own() - b.used()
	measuring := time.Now()
	for _, s := range steps {
		if err = b.step(ctx, s); err != nil {
			break // what has been measured is shown all the same
		}
	}
	others := (gateway.Busy() - gateway.Own() - b.used() - b.busy).Seconds() / time.Since(measuring).Seconds()
	b.print(table, machine(others))
	return err
}

// bench is one measurement.
type bench struct {
	options
	provider *provider.Server
	dir      string
	progress io.Writer
	begun    time.Time
	busy     time.Duration // of other processes, before the first step

	targets      []*target // in the order in which they are measured
	ours, theirs *target
}

// starts is how often laneway is started for its start-up time; the stock gateway takes
// half a minute and is started once.
const starts = 5

// start starts the gateways and measures that.
func (b *bench) start(ctx context.Context) error {
	if b.stock != "" {
		b.sayf("stock gateway: start, hello and first run on new state")
		b.theirs = &target{name: "stock", provider: b.provider}
		err := b.theirs.start(ctx, func() (*gateway.Gateway, error) {
			return gateway.Stock(b.stock, b.node, b.dir+"/stock", b.provider.URL, provider.Model)
		})
		if err != nil {
			return err
		}
		b.targets = append(b.targets, b.theirs)
	}
	b.sayf("laneway: start, hello and first run on new state, %d times", starts)
	b.ours = &target{name: "laneway", provider: b.provider}
	b.targets = append(b.targets, b.ours)
	for i := range starts {
		if i > 0 {
			b.ours.stop()
		}
		err := b.ours.start(ctx, func() (*gateway.Gateway, error) {
			return gateway.Laneway(b.laneway, fmt.Sprintf("%s/laneway-%d", b.dir, i), b.provider.URL, provider.Model)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) stop() {
	for _, t := range b.targets {
		t.stop()
	}
}

// used is the processor time of the gateways.
func (b *bench) used() time.Duration {
	var sum time.Duration
	for _, t := range b.targets {
		sum += t.gateway.Usage().CPU
	}
	return sum
}

// sayf prints a line of progress.
func (b *bench) sayf(format string, args ...any) {
	fmt.Fprintf(b.progress, "[%4.0f s] %s\n", time.Since(b.begun).Seconds(), fmt.Sprintf(format, args...))
}
