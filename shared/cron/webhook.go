package cron

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"laneway/shared/protocol"
	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/table"
)

// A webhook is posted by the timer queue: it survives a restart, keeps no run from
// being settled, and is tried again with growing pauses. It may come more than once;
// its id, which is the run's, tells.

// TimerKind is the kind of this package's timers.
const TimerKind = "cron.webhook"

// States of a delivery.
const (
	notRequested = "not-requested"
	unknownYet   = "unknown" // until it is delivered, or given up
	delivered    = "delivered"
	notDelivered = "not-delivered"
)

const webhookTimeout = 10 * time.Second

// webhookPauses are between the tries: about four hours in all.
var webhookPauses = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute,
	queue.MaxDelay, queue.MaxDelay, queue.MaxDelay, queue.MaxDelay, queue.MaxDelay, queue.MaxDelay, queue.MaxDelay, queue.MaxDelay,
	queue.MaxDelay, queue.MaxDelay, queue.MaxDelay, queue.MaxDelay,
}

// post is a webhook that is on its way. Address and secret are those of the time at
// which the run ended: the job may be gone by the time it is posted.
type post struct {
	Kind   string `json:"kind"`
	Tenant string `json:"t"`
	JobID  string `json:"job"`
	Name   string `json:"name"`
	RunID  string `json:"run"`
	URL    string `json:"url"`
	Secret string `json:"key"`
	Tries  int    `json:"n,omitempty"`
}

func (s *Service) sendLater(ctx context.Context, j *Job, st *run.Status) error {
	return s.after(ctx, 0, post{Kind: TimerKind, Tenant: j.Tenant, JobID: j.ID, Name: j.Name, RunID: st.RunID, URL: j.webhook(), Secret: j.Secret})
}

func (s *Service) after(ctx context.Context, d time.Duration, p post) error {
	b, err := json.Marshal(p) //nolint:gosec // the secret travels to the one who signs
	if err != nil {
		return err
	}
	return s.Timers.After(ctx, d, b)
}

// HandleTimer posts the webhook that a timer came for.
func (s *Service) HandleTimer(ctx context.Context, body []byte) error {
	var p post
	if err := json.Unmarshal(body, &p); err != nil || p.Kind != TimerKind {
		return errors.New("cron: not a timer of a webhook")
	}
	st, err := run.Load(ctx, s.Store, run.RefOf(p.Tenant, p.RunID))
	if errors.Is(err, run.ErrUnknown) || err == nil && !st.Done() {
		return s.told(ctx, &p, notDelivered, "the run's record is gone")
	}
	if err != nil {
		return err
	}
	err = s.post(ctx, &p, &st)
	if err == nil {
		return s.told(ctx, &p, delivered, "")
	}
	if ctx.Err() != nil {
		return err // the process is to end: the timer comes again
	}
	if p.Tries < len(webhookPauses) {
		s.Log.Info("webhook not delivered", "job", p.JobID, "run", p.RunID, "tries", p.Tries+1, "err", err)
		pause := webhookPauses[p.Tries]
		p.Tries++
		return s.after(ctx, pause, p)
	}
	s.Log.Warn("webhook given up", "job", p.JobID, "run", p.RunID, "err", err)
	return s.told(ctx, &p, notDelivered, err.Error())
}

// payload is what a webhook carries.
type payload struct {
	protocol.CronEntry
	Event string `json:"event"`          // cron.finished
	Text  string `json:"text,omitempty"` // the whole reply
}

// post makes one try. Its errors hold neither the address nor what was answered.
func (s *Service) post(ctx context.Context, p *post, st *run.Status) error {
	res := resultOf(st)
	began := st.StartedAt
	if began == 0 {
		began = st.EndedAt
	}
	e := protocol.CronEntry{
		TS: st.EndedAt, JobID: p.JobID, JobName: p.Name, Action: "finished", Status: res.status, Error: cut(res.text, maxError), ErrorReason: res.reason,
		Summary: cut(st.Outcome.Text, maxSummary), RunID: st.RunID, SessionKey: st.SessionKey, SessionID: st.SessionID,
		RunAtMs: began, DurationMs: st.EndedAt - began, Model: st.Outcome.Model, Provider: st.Outcome.Provider,
	}
	body, err := json.Marshal(payload{Event: "cron.finished", CronEntry: e, Text: st.Outcome.Text})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, webhookTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("not an address to post to")
	}
	at := strconv.FormatInt(s.now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "laneway")
	req.Header.Set("Webhook-Id", st.RunID)
	req.Header.Set("Webhook-Timestamp", at)
	req.Header.Set("Webhook-Signature", Sign(p.Secret, st.RunID, at, body))
	answer, err := s.HTTP.Do(req)
	if err != nil {
		return reason(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("answered with status %d", answer.StatusCode)
	}
	return nil
}

// reason is a failed request without its address, which may hold a key.
func reason(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", webhookTimeout)
	case errors.Is(err, errPrivate):
		return errPrivate
	}
	return errors.New("no connection")
}

const secretPrefix = "whsec_"

// newSecret is a fresh secret of 256 bits, in the form of the Standard Webhooks.
func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return secretPrefix + base64.StdEncoding.EncodeToString(b[:])
}

// Sign is the signature of a webhook, as the Standard Webhooks have it: HMAC-SHA256
// under the job's secret over id, time and body, with dots between them. A receiver
// compares in constant time, and refuses a time that is minutes away.
func Sign(secret, runID, at string, body []byte) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil {
		key = []byte(secret)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(runID + "." + at + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// told writes into history and job what became of a delivery. Both may be gone.
func (s *Service) told(ctx context.Context, p *post, status, why string) error {
	_, slot, _ := JobOf(p.RunID)
	key := entryKey(p.Tenant, p.JobID, slot.UnixMilli())
	it, err := s.Store.Get(ctx, key)
	if errors.Is(err, table.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var e protocol.CronEntry
	if err := json.Unmarshal(it.Attrs.Bytes(attrEntry), &e); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	e.DeliveryStatus, e.DeliveryError = status, why
	b, err := json.Marshal(e) //nolint:gosec // a session key is an address, no secret
	if err != nil {
		return err
	}
	err = s.write(ctx, table.Op{Kind: table.Update, Key: key, If: table.Exists(), Set: []table.SetOp{{Path: table.P(attrEntry), Value: b}}})
	if err != nil && !errors.Is(err, table.ErrCondition) {
		return err
	}
	_, err = s.edit(ctx, p.Tenant, p.JobID, func(j *Job) (outcome, []entry, error) {
		if j.State.LastRunAtMs != e.RunAtMs {
			return keep, nil, nil
		}
		ok := status == delivered
		j.State.LastDeliveryStatus, j.State.LastDelivered = status, &ok
		return write, nil, nil
	})
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	return err
}

// checkURL says whether something can be posted to an address.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return errors.New("must be an http or https URL with mode 'webhook'")
	}
	return nil
}

var errPrivate = errors.New("the address is not a public one")

// PublicClient is a client that follows no redirects and reaches no address inside:
// what a tenant names is not to reach what only the machine may.
func PublicClient() *http.Client {
	return client(func(a netip.Addr) bool {
		return a.IsGlobalUnicast() && !a.IsPrivate() && !sharedSpace.Contains(a)
	})
}

// AnyClient is PublicClient for an edition whose user owns the machine: every address
// is reached.
func AnyClient() *http.Client { return client(func(netip.Addr) bool { return true }) }

// sharedSpace is what carriers use inside.
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")

func client(allowed func(netip.Addr) bool) *http.Client {
	d := net.Dialer{Timeout: webhookTimeout, Control: func(_, address string, _ syscall.RawConn) error {
		a, err := netip.ParseAddrPort(address)
		if err != nil || !allowed(a.Addr().Unmap()) {
			return errPrivate
		}
		return nil
	}}
	return &http.Client{
		// No proxy: it would be asked for the address instead of us.
		Transport:     &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true, TLSHandshakeTimeout: webhookTimeout, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
