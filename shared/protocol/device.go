package protocol

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"
)

// DeviceSkew is how far the time that a client signed may be from ours.
const DeviceSkew = 120 * time.Second

// Why a device proof is not accepted; in the order in which they are looked for.
var (
	ErrDeviceKey       = errors.New("device public key invalid")
	ErrDeviceID        = errors.New("device identity mismatch") // the id is not the key's
	ErrDeviceNonce     = errors.New("device nonce mismatch")
	ErrDeviceExpired   = errors.New("device signature expired")
	ErrDeviceSignature = errors.New("device signature invalid")
)

// VerifyDevice checks that the client holds the key of the device it names: the id
// is the key's hash, and the key signed this connect for this connection's nonce
// not long ago. It says nothing about whether the device is known.
func VerifyDevice(p *ConnectParams, nonce string, now time.Time) error {
	d := p.Device
	key, err := decodeBase64(d.PublicKey)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return ErrDeviceKey
	}
	sum := sha256.Sum256(key)
	if d.ID != hex.EncodeToString(sum[:]) {
		return ErrDeviceID
	}
	// The signature covers the nonce; comparing it ties the proof to this connection.
	if d.Nonce != nonce || nonce == "" {
		return ErrDeviceNonce
	}
	if age := now.UnixMilli() - d.SignedAt; age > DeviceSkew.Milliseconds() || -age > DeviceSkew.Milliseconds() {
		return ErrDeviceExpired
	}
	sig, err := decodeBase64(d.Signature)
	if err != nil || len(sig) != ed25519.SignatureSize {
		return ErrDeviceSignature
	}
	for _, text := range []string{deviceTextV3(p), deviceTextV2(p)} {
		if ed25519.Verify(key, []byte(text), sig) {
			return nil
		}
	}
	return ErrDeviceSignature
}

// DeviceRefused is the answer to a connect whose proof failed.
func DeviceRefused(err error) *Error {
	return Invalid(err.Error()).With("code", DetailDeviceInvalid).With("reason", strings.ReplaceAll(err.Error(), " ", "-"))
}

// deviceTextV2 is what a browser signs.
func deviceTextV2(p *ConnectParams) string { return deviceText("v2", p) }

// deviceTextV3 is what other clients sign: v2 and the platform.
func deviceTextV3(p *ConnectParams) string {
	return deviceText("v3", p) + "|" + plain(p.Client.Platform) + "|" + plain(p.Client.DeviceFamily)
}

func deviceText(version string, p *ConnectParams) string {
	return strings.Join([]string{
		version, p.Device.ID, p.Client.ID, p.Client.Mode, p.Role, strings.Join(p.Scopes, ","),
		strconv.FormatInt(p.Device.SignedAt, 10), signedSecret(p.Auth), p.Device.Nonce,
	}, "|")
}

// signedSecret is the credential that is part of the signed text: never a password.
func signedSecret(a *ConnectAuth) string {
	switch {
	case a == nil:
		return ""
	case a.Token != "":
		return a.Token
	case a.DeviceToken != "":
		return a.DeviceToken
	}
	return a.BootstrapToken
}

// plain trims and lowers ASCII letters only, as clients do.
func plain(s string) string {
	b := []byte(strings.TrimSpace(s))
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

// decodeBase64 reads base64url, with or without padding.
func decodeBase64(s string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
}

// SignDevice fills in p.Device as clients do (v3). It is for our own client and for
// tests. signedAt is the ts of the challenge.
func SignDevice(p *ConnectParams, key ed25519.PrivateKey, nonce string, signedAtMs int64) {
	public := key.Public().(ed25519.PublicKey) //nolint:forcetypeassert // documented to be one
	sum := sha256.Sum256(public)
	p.Device = &ConnectDevice{
		ID: hex.EncodeToString(sum[:]), PublicKey: base64.RawURLEncoding.EncodeToString(public),
		SignedAt: signedAtMs, Nonce: nonce,
	}
	p.Device.Signature = base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(deviceTextV3(p))))
}
