package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// lambda is a built function under the runtime interface emulator.
type lambda struct {
	name string
	url  string
	cmd  *exec.Cmd
	log  bytes.Buffer
}

// start starts the emulator; the function itself starts with its first event.
func (b *bench) start(ctx context.Context, name string) (*lambda, error) {
	front, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	api, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	f := &lambda{name: name, url: "http://" + front + "/2015-03-31/functions/function/invocations"}
	f.cmd = exec.Command(b.emulator, "--runtime-interface-emulator-address", front, "--runtime-api-address", api,
		b.dist+"/"+name+"/bootstrap")
	f.cmd.Env = append(os.Environ(), b.env...)
	if name == "runner" { // it alone may read the secret
		f.cmd.Env = append(f.cmd.Env, "LANEWAY_SECRET_ARN="+b.secret)
	}
	f.cmd.Stdout, f.cmd.Stderr = &f.log, &f.log
	f.cmd.WaitDelay = 5 * time.Second // the function is the emulator's child and holds its output
	if err := f.cmd.Start(); err != nil {
		return nil, err
	}
	if err := listening(ctx, front); err != nil {
		f.stop()
		return nil, fmt.Errorf("the emulator of %s does not listen: %w\n%s", name, err, f.log.Bytes())
	}
	return f, nil
}

// listening waits until somebody listens at an address.
func listening(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

func (f *lambda) stop() {
	_ = f.cmd.Process.Signal(syscall.SIGTERM)
	_ = f.cmd.Wait() // it was ended
}

// invocation is one event and what came of it.
type invocation struct {
	answer     []byte
	begin, end time.Time
	gb         float64 // what the function is given by default
}

func (i invocation) took() time.Duration { return i.end.Sub(i.begin) }

// errRefused is an answer that is an error of the function.
var errRefused = errors.New("the function answers with an error")

func (f *lambda) invoke(ctx context.Context, event []byte) (invocation, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, bytes.NewReader(event))
	if err != nil {
		return invocation{}, err
	}
	i := invocation{begin: time.Now(), gb: memoryMB[f.name] / 1024}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return i, err
	}
	defer func() { _ = res.Body.Close() }()
	i.answer, err = io.ReadAll(res.Body)
	i.end = time.Now()
	if bytes.Contains(i.answer, []byte(`"errorMessage"`)) {
		return i, fmt.Errorf("%w: %s: %s", errRefused, f.name, i.answer)
	}
	return i, err
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// coldStarts measures the first event of new processes: one that the function refuses
// without calling anybody, so that it is the process and its setup alone.
func (b *bench) coldStarts(ctx context.Context, name string) ([]time.Duration, error) {
	var all []time.Duration
	for range coldTries {
		f, err := b.start(ctx, name)
		if err != nil {
			return nil, err
		}
		i, err := f.invoke(ctx, []byte(`{}`))
		f.stop()
		if err != nil && !errors.Is(err, errRefused) {
			return nil, err
		}
		all = append(all, i.took())
	}
	return all, nil
}
