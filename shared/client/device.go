package client

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"laneway/shared/protocol"
)

// Device is an Ed25519 identity that outlives tokens. Its id is the hash of its
// public key.
type Device struct{ key ed25519.PrivateKey }

// NewDevice makes an identity.
func NewDevice() (*Device, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return &Device{key}, nil
}

// LoadDevice reads the identity kept in a file, and makes it if there is none. The
// file holds the seed in base64 and can be read by its owner only.
func LoadDevice(path string) (*Device, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return storeDevice(path)
	}
	if err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s does not hold a device key", path)
	}
	return &Device{ed25519.NewKeyFromSeed(seed)}, nil
}

func storeDevice(path string) (*Device, error) {
	d, err := NewDevice()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	text := base64.StdEncoding.EncodeToString(d.key.Seed()) + "\n"
	// O_EXCL: two commands that start at once must not end up with two identities.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return LoadDevice(path)
	}
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return nil, err
	}
	return d, f.Close()
}

// ID is the lowercase hex SHA-256 of the public key.
func (d *Device) ID() string {
	sum := sha256.Sum256(d.public())
	return hex.EncodeToString(sum[:])
}

func (d *Device) public() ed25519.PublicKey {
	return d.key.Public().(ed25519.PublicKey) //nolint:forcetypeassert // documented to be of this type
}

// prove signs the request in form v3: everything that the gateway could be made to
// believe, bound to its challenge. Only the token is signed as a secret; a password
// is not.
func (d *Device) prove(p protocol.ConnectParams, token string, ch protocol.Challenge) *protocol.ConnectDevice {
	text := strings.Join([]string{
		"v3", d.ID(), p.Client.ID, p.Client.Mode, p.Role, strings.Join(p.Scopes, ","),
		strconv.FormatInt(ch.TS, 10), token, ch.Nonce, plain(p.Client.Platform), plain(p.Client.DeviceFamily),
	}, "|")
	b64 := base64.RawURLEncoding
	return &protocol.ConnectDevice{
		ID: d.ID(), PublicKey: b64.EncodeToString(d.public()),
		Signature: b64.EncodeToString(ed25519.Sign(d.key, []byte(text))), SignedAt: ch.TS, Nonce: ch.Nonce,
	}
}

// plain is a name as it is signed: trimmed, ASCII letters in lower case.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, strings.TrimSpace(s))
}
