package protocol

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

const (
	testNonce = "a9c6b5b7"
	testTime  = int64(1_796_058_317_819)
)

func deviceKey(b byte) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = b
	return ed25519.NewKeyFromSeed(seed)
}

func deviceConnect(t *testing.T) ConnectParams {
	t.Helper()
	p := ConnectParams{
		MinProtocol: 4, MaxProtocol: 4, Role: RoleOperator, Scopes: []string{ScopeRead, ScopeWrite},
		Client: ConnectClient{ID: "cli", Mode: "cli", Version: "1", Platform: " LinuxÄ ", DeviceFamily: "Linux"},
		Auth:   &ConnectAuth{Token: "t0ken"},
	}
	SignDevice(&p, deviceKey(1), testNonce, testTime)
	return p
}

func TestVerifyDevice(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(testTime)
	for name, c := range map[string]struct {
		change func(p *ConnectParams)
		nonce  string
		now    time.Time
		want   error
	}{
		"as sent":           {want: nil},
		"120 s late":        {now: now.Add(DeviceSkew), want: nil},
		"120 s early":       {now: now.Add(-DeviceSkew), want: nil},
		"later than 120 s":  {now: now.Add(DeviceSkew + time.Millisecond), want: ErrDeviceExpired},
		"earlier than that": {now: now.Add(-DeviceSkew - time.Millisecond), want: ErrDeviceExpired},
		"other nonce":       {nonce: "other", want: ErrDeviceNonce},
		"key of another": {change: func(p *ConnectParams) {
			other := *p
			SignDevice(&other, deviceKey(2), testNonce, testTime)
			p.Device.PublicKey = other.Device.PublicKey
		}, want: ErrDeviceID},
		"short key":            {change: func(p *ConnectParams) { p.Device.PublicKey = "AAAA" }, want: ErrDeviceKey},
		"key no base64":        {change: func(p *ConnectParams) { p.Device.PublicKey = "%" }, want: ErrDeviceKey},
		"signature changed":    {change: func(p *ConnectParams) { p.Device.Signature = strings.Repeat("A", 86) }, want: ErrDeviceSignature},
		"signature short":      {change: func(p *ConnectParams) { p.Device.Signature = "AAAA" }, want: ErrDeviceSignature},
		"more scopes":          {change: func(p *ConnectParams) { p.Scopes = []string{ScopeAdmin} }, want: ErrDeviceSignature},
		"other role":           {change: func(p *ConnectParams) { p.Role = "node" }, want: ErrDeviceSignature},
		"other client":         {change: func(p *ConnectParams) { p.Client.ID = "gateway-client" }, want: ErrDeviceSignature},
		"other token":          {change: func(p *ConnectParams) { p.Auth.Token = "x" }, want: ErrDeviceSignature},
		"other platform":       {change: func(p *ConnectParams) { p.Client.Platform = "darwin" }, want: ErrDeviceSignature},
		"platform in capitals": {change: func(p *ConnectParams) { p.Client.Platform = "LINUXÄ" }, want: nil},
		"padded base64":        {change: func(p *ConnectParams) { p.Device.Signature += "==" }, want: nil},
	} {
		p := deviceConnect(t)
		if c.change != nil {
			c.change(&p)
		}
		nonce, at := testNonce, now
		if c.nonce != "" {
			nonce = c.nonce
		}
		if !c.now.IsZero() {
			at = c.now
		}
		if err := VerifyDevice(&p, nonce, at); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: got %v want %v", name, err, c.want)
		}
	}
}

func TestVerifyDevice_SignedTextIsTheDocumentedOne(t *testing.T) {
	t.Parallel()
	p := deviceConnect(t)
	id := p.Device.ID
	v3 := "v3|" + id + "|cli|cli|operator|operator.read,operator.write|1796058317819|t0ken|a9c6b5b7|linuxÄ|linux"
	v2 := "v2|" + id + "|cli|cli|operator|operator.read,operator.write|1796058317819|t0ken|a9c6b5b7"
	if deviceTextV3(&p) != v3 || deviceTextV2(&p) != v2 {
		t.Errorf("got\n%s\n%s\nwant\n%s\n%s", deviceTextV3(&p), deviceTextV2(&p), v3, v2)
	}
	p.Device.Signature = base64.RawURLEncoding.EncodeToString(ed25519.Sign(deviceKey(1), []byte(v2)))
	if err := VerifyDevice(&p, testNonce, time.UnixMilli(testTime)); err != nil {
		t.Errorf("a browser's signature: %v", err)
	}
	if p.Auth = (&ConnectAuth{Password: "pw"}); signedSecret(p.Auth) != "" {
		t.Error("a password is part of the signed text")
	}
	if signedSecret(nil) != "" || signedSecret(&ConnectAuth{DeviceToken: "d", BootstrapToken: "b"}) != "d" || signedSecret(&ConnectAuth{BootstrapToken: "b"}) != "b" {
		t.Error("secret of a device or bootstrap token")
	}
}

func TestVerifyDevice_EmptyNonceIsNeverAccepted(t *testing.T) {
	t.Parallel()
	p := deviceConnect(t)
	SignDevice(&p, deviceKey(1), "", testTime)
	if err := VerifyDevice(&p, "", time.UnixMilli(testTime)); !errors.Is(err, ErrDeviceNonce) {
		t.Errorf("got %v", err)
	}
}

func TestConnect_SecretAndVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		auth *ConnectAuth
		want string
	}{
		{nil, ""},
		{&ConnectAuth{}, ""},
		{&ConnectAuth{Token: "t", Password: "p"}, "t"},
		{&ConnectAuth{Password: "p", DeviceToken: "d"}, "p"},
		{&ConnectAuth{DeviceToken: "d"}, "d"},
	} {
		if got := (&ConnectParams{Auth: c.auth}).Secret(); got != c.want {
			t.Errorf("%+v: got %q", c.auth, got)
		}
	}
	for _, c := range []struct {
		low, high int64
		mode      string
		want      bool
	}{
		{4, 4, "cli", true},
		{3, 5, "cli", true},
		{3, 3, "cli", false},
		{5, 6, "cli", false},
		{3, 3, ModeProbe, true},
		{3, 4, ModeProbe, true},
		{2, 2, ModeProbe, false},
	} {
		p := ConnectParams{MinProtocol: c.low, MaxProtocol: c.high, Client: ConnectClient{Mode: c.mode}}
		if p.Speaks() != c.want {
			t.Errorf("%+v: got %v", c, !c.want)
		}
	}
}

func TestHello_IsSmall(t *testing.T) {
	t.Parallel()
	var names []string
	for _, m := range Methods() {
		if !m.Hidden {
			names = append(names, m.Name)
		}
	}
	h := NewHello("2026.12.1", "c0nnection-id-of-36-characters-aaaaa=", names, []string{EventAgent, EventChat, EventTick}, []string{ScopeAdmin})
	h.Snapshot.SessionDefaults = &SessionDefaults{DefaultAgentID: "main", MainKey: "main", MainSessionKey: "agent:main:main"}
	raw, err := Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > 1200 {
		t.Errorf("hello-ok is %d bytes with every method", len(raw))
	}
	none, err := Marshal(NewHello("1", "c", nil, nil, nil))
	if err != nil || strings.Contains(string(none), "null") || !json.Valid(none) {
		t.Errorf("%s, %v: a list is null", none, err)
	}
}
