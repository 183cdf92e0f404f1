package pushtest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The key that a Server takes; every other is refused with 403.
const (
	KeyID     = "AKIDEXAMPLE"
	SecretKey = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" // the example of AWS's own documentation
	Region    = "eu-north-1"
)

// Server speaks API Gateway's @connections, over TLS as it does, in both path
// forms. It checks signatures with code of its own, reading the raw request:
// what a client signs by mistake is refused here as there.
type Server struct {
	*httptest.Server

	mu      sync.Mutex
	peers   map[string]*Peer
	refused int
}

// NewServer starts a server that ends with the test.
func NewServer(t *testing.T) *Server {
	t.Helper()
	s := &Server{peers: make(map[string]*Peer)}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// Connect makes a live connection.
func (s *Server) Connect(id string) *Peer {
	p := newPeer()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers[id] = p
	return p
}

// Refused is how many requests had no valid signature or path.
func (s *Server) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

func (s *Server) refuse(w http.ResponseWriter, why string) {
	s.mu.Lock()
	s.refused++
	s.mu.Unlock()
	http.Error(w, `{"message":"`+why+`"}`, http.StatusForbidden)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if why := verify(r, body); why != "" {
		s.refuse(w, why)
		return
	}
	raw, _, _ := strings.Cut(r.RequestURI, "?")
	parts := strings.Split(strings.TrimPrefix(raw, "/"), "/")
	if len(parts) > 2 && parts[0] == "_aws" && parts[1] == "execute-api" {
		parts = parts[3:] // the API
	}
	if len(parts) != 3 || parts[0] == "" || parts[1] != "@connections" {
		s.refuse(w, "no such path")
		return
	}
	id, err := url.PathUnescape(parts[2])
	if err != nil {
		s.refuse(w, "no such path")
		return
	}
	s.mu.Lock()
	p := s.peers[id]
	s.mu.Unlock()
	if p == nil {
		p = gonePeer()
	}
	p.serve(w, r, body)
}

// verify says what is wrong with a request's SigV4 signature, or nothing.
func verify(r *http.Request, body []byte) string {
	auth, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if !ok {
		return "not signed"
	}
	fields := make(map[string]string)
	for part := range strings.SplitSeq(auth, ",") {
		k, v, _ := strings.Cut(strings.TrimSpace(part), "=")
		fields[k] = v
	}
	date := r.Header.Get("X-Amz-Date")
	if len(date) != len("20060102T150405Z") {
		return "no date"
	}
	scope := date[:8] + "/" + Region + "/execute-api/aws4_request"
	if fields["Credential"] != KeyID+"/"+scope {
		return "wrong credential scope"
	}
	signed := strings.Split(fields["SignedHeaders"], ";")
	if !slices.Contains(signed, "host") || !slices.Contains(signed, "x-amz-date") {
		return "host or date not signed"
	}
	var headers strings.Builder
	for _, h := range signed {
		v := r.Header.Get(h)
		switch h {
		case "host":
			v = r.Host
		case "content-length":
			v = strconv.FormatInt(r.ContentLength, 10)
		}
		headers.WriteString(h + ":" + strings.TrimSpace(v) + "\n")
	}
	path, query, _ := strings.Cut(r.RequestURI, "?")
	hash := sha256.Sum256(body)
	canonical := strings.Join([]string{
		r.Method, escapeAgain(path), query, headers.String(), fields["SignedHeaders"], hex.EncodeToString(hash[:]),
	}, "\n")
	hash = sha256.Sum256([]byte(canonical))
	key := []byte("AWS4" + SecretKey)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	want := hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+hex.EncodeToString(hash[:])))
	if fields["Signature"] != want {
		return "wrong signature"
	}
	return ""
}

// escapeAgain is the canonical path: the sent one, escaped once more, as every
// service but S3 has it.
func escapeAgain(path string) string {
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~/", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func mac(key []byte, s string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(s))
	return h.Sum(nil)
}
