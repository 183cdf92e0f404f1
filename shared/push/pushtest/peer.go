package pushtest

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// Peer is the client's side of a connection on a Server.
type Peer struct {
	mu       sync.Mutex
	received []string
	script   []Answer
	hung     bool
	gone     bool
}

// Answer is a scripted answer to one request. Delivered says that the message
// reached the client all the same.
type Answer struct {
	Status    int
	Body      string
	Delivered bool
}

func newPeer() *Peer { return &Peer{} }

func gonePeer() *Peer { return &Peer{gone: true} }

// Script gives the answers to the next requests.
func (p *Peer) Script(answers ...Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = append(p.script, answers...)
}

// Hang makes requests wait until their client gives up, or ends that.
func (p *Peer) Hang(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hung = on
}

// Leave ends the connection from the client's side.
func (p *Peer) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
}

// Received is the messages that came, in order.
func (p *Peer) Received() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.received)
}

func (p *Peer) serve(w http.ResponseWriter, r *http.Request, body []byte) {
	a, hung := p.answer(r.Method, body)
	if hung {
		<-r.Context().Done()
		return
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write([]byte(a.Body))
}

func (p *Peer) answer(method string, body []byte) (a Answer, hung bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hung {
		return Answer{}, true
	}
	if len(p.script) > 0 {
		a = p.script[0]
		p.script = p.script[1:]
		if a.Delivered {
			p.received = append(p.received, string(body))
		}
		return a, false
	}
	if p.gone {
		return Answer{Status: http.StatusGone, Body: `{"message":"Gone"}`}, false
	}
	switch method {
	case http.MethodPost:
		p.received = append(p.received, string(body))
		return Answer{Status: http.StatusOK}, false
	case http.MethodGet:
		now := time.Now().UTC().Format(time.RFC3339)
		return Answer{Status: http.StatusOK, Body: `{"connectedAt":"` + now + `","lastActiveAt":"` + now + `","identity":{}}`}, false
	case http.MethodDelete:
		p.gone = true
		return Answer{Status: http.StatusNoContent}, false
	}
	return Answer{Status: http.StatusMethodNotAllowed}, false
}
