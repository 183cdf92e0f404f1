package client

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// carrier is the range of shared addresses behind a provider's translation, which
// private overlay networks use as well.
var carrier = netip.MustParsePrefix("100.64.0.0/10")

// gatewayURL checks an address and gives it its WebSocket scheme.
func gatewayURL(raw string, allowPlain bool) (string, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%w: %q (want ws://host:port or wss://host)", ErrURL, redact(raw))
	}
	switch u.Scheme {
	case "ws", "http":
		u.Scheme = "ws"
		if !allowPlain && !private(u.Hostname()) {
			return "", ErrPlain
		}
	case "wss", "https":
		u.Scheme = "wss"
	default:
		return "", fmt.Errorf("%w: %q has the scheme %q, want ws or wss", ErrURL, redact(raw), u.Scheme)
	}
	u.Fragment = ""
	return u.String(), nil
}

// Loopback says whether an address is this machine. There a gateway trusts the
// shared token and needs no device identity.
func Loopback(raw string) bool {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return false
	}
	host := u.Hostname()
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// private says whether a host is this machine or on a network that is not public.
func private(host string) bool {
	host = strings.ToLower(host)
	if host == "localhost" || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".ts.net") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	ip = ip.Unmap()
	return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || carrier.Contains(ip)
}

// redact is an address without what may be secret in it.
func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "?"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
