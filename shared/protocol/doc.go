// Package protocol is the wire contract of the gateway, version 4: frames,
// params, results, events and error codes. It has no behaviour: it reads no
// clock, keeps no state, and knows neither sessions nor storage.
//
// Guarantees:
//
//   - Whatever bytes come in, decoding does not panic, and ends in exactly one
//     of three ways: a value, an *Error that can be sent as it is, or ErrNotJSON.
//   - What was decoded fits its closed schema: no unknown member, no member
//     twice, no member in another spelling. connect alone ignores what it does
//     not know.
//   - An error names the member that is wrong, never its value, and stays under
//     a few kilobytes whatever was sent.
//   - Every frame that is encoded here is one valid JSON object, and carries text
//     unchanged (no HTML escapes). An encoded error always has a code and a
//     message, because clients drop a response without them.
package protocol

// Version is the wire version that is spoken. MinProbeVersion is the oldest one
// that a client in mode "probe" may still offer.
const (
	Version         = 4
	MinProbeVersion = 3
)

// Close codes that the gateway uses where it can choose one (API Gateway offers
// no choice).
const (
	CloseNormal        = 1000 // with an empty reason a client attaches again
	CloseProtocolError = 1002 // protocol versions do not overlap
	ClosePolicy        = 1008 // refused connect, first message is no request
	CloseTooBig        = 1009 // a message over the limit
	CloseRestart       = 1012 // shutdown
	CloseTryLater      = 1013 // still starting
	CloseAuthChanged   = 4001 // what let the client in is revoked
)
