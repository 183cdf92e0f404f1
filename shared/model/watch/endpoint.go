package watch

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"laneway/shared/model"
)

// Target is what tells where a model runs. No name is resolved: the same
// configuration must give the same class everywhere.
type Target struct {
	// BaseURL of the server; empty: the provider's own.
	BaseURL string
	// Provider id, as openai or ollama.
	Provider string
	// Model ref; one that ends in :cloud runs in the cloud wherever the server is.
	Model string
	// APIKey is only compared with the markers for local servers.
	APIKey string
	// LocalService says that the configuration calls the server local.
	LocalService bool
}

// Class gives the endpoint class of a target (spec: runtime 5.2).
func Class(t Target) model.Endpoint {
	if strings.HasSuffix(strings.ToLower(t.Model), ":cloud") {
		return model.Cloud
	}
	host := hostOf(t.BaseURL)
	own := selfHostedProvider(strings.ToLower(t.Provider))
	switch {
	case localHost(host):
		return model.Local
	case host == "docker.orb.internal" || host == "host.docker.internal" || host == "host.orb.internal":
		return model.SelfHosted
	case own:
		return model.SelfHosted
	case bare(host) && (t.LocalService || t.APIKey == "custom-local" || t.APIKey == "ollama-local"):
		return model.SelfHosted
	}
	return model.Cloud
}

func hostOf(base string) string {
	if base == "" {
		return ""
	}
	if !strings.Contains(base, "://") {
		base = "//" + base
	}
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
}

// The address ranges of machines and networks of one's own. 100.64/10 is shared
// address space, which private overlay networks use.
var (
	local4 = prefixes("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
	local6 = prefixes("fc00::/7", "fe80::/10")
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

func localHost(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".local") {
		return true
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	a = a.WithZone("")
	if a.Is4In6() {
		// Loopback only: a private IPv4 address in this form is not local.
		return a.Unmap().IsLoopback()
	}
	if a == netip.IPv6Loopback() || a == netip.IPv4Unspecified() {
		return true
	}
	for _, p := range slices.Concat(local4, local6) {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// selfHostedProvider knows the servers that people run themselves, by provider
// id: the plain one or one that begins with it, as vllm-east.
func selfHostedProvider(provider string) bool {
	if strings.HasPrefix(provider, "ollama-cloud") {
		return false
	}
	for _, p := range [...]string{"ollama", "lmstudio", "vllm", "sglang", "llama-cpp"} {
		if strings.HasPrefix(provider, p) {
			return true
		}
	}
	return false
}

// bare says that host is a name without dots, as services of one compose file have.
func bare(host string) bool { return host != "" && !strings.ContainsAny(host, ".:") }
