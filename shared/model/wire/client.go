package wire

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// Client is the HTTP client of an adapter that was given none. It has no timeout
// of its own: a stream may last for hours, and silence is the watchdog's matter.
// Only connecting is bounded. Idle connections are kept for as many calls as a
// machine makes at once, because a new one costs a handshake before the first word.
func Client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        256,
		MaxIdleConnsPerHost: 128,
		IdleConnTimeout:     90 * time.Second,
		// A request that fits is one write; one that does not makes net/http take 32 KB
		// more for copying it.
		WriteBufferSize:       64 << 10,
		TLSHandshakeTimeout:   15 * time.Second,
		ExpectContinueTimeout: time.Second,
		// Compressed events would wait in the compressor's window.
		DisableCompression: true,
	}}
}

// drainTime and drainBytes bound what Finish waits for and reads.
const (
	drainTime  = 20 * time.Millisecond
	drainBytes = 4 << 10
)

// Finish closes a body whose message has ended. The few bytes that may follow the
// last event are read first, so that the connection can be used again; a server
// that keeps it open instead is cut after 20 ms by cancel, the request's own.
func Finish(body io.ReadCloser, cancel context.CancelFunc) {
	stop := time.AfterFunc(drainTime, cancel)
	// What comes here has no meaning any more, and neither has its error.
	_, _ = io.CopyN(io.Discard, body, drainBytes)
	stop.Stop()
	_ = body.Close()
	cancel()
}
