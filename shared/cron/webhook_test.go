package cron_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"laneway/shared/cron"
	"laneway/shared/run"
	"laneway/shared/table/tabletest"
)

// got is a request that a receiver got.
type got struct {
	header http.Header
	body   []byte
}

// receiver answers with a status at a time; the last one stays.
func receiver(t *testing.T, statuses ...int) (url string, take func() []got) {
	t.Helper()
	requests := make(chan got, 64)
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.Method != http.MethodPost {
			t.Errorf("method %s", r.Method)
		}
		requests <- got{r.Header, body}
		w.WriteHeader(statuses[min(n, len(statuses)-1)])
		n++
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/hook?key=sesame", func() []got {
		var all []got
		for {
			select {
			case g := <-requests:
				all = append(all, g)
			default:
				return all
			}
		}
	}
}

// ring delivers the timers that are armed, and gives their pauses.
func (b *bench) ring() (pauses []time.Duration) {
	b.t.Helper()
	for _, a := range b.timers.take() {
		b.Clock.Advance(a.after)
		must(b.t, b.jobs.HandleTimer(b.t.Context(), a.body))
		pauses = append(pauses, a.after)
	}
	return pauses
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		url, take := receiver(t, http.StatusNoContent)
		j := b.add(every(time.Hour), webhook(url))
		runID := b.fires(j.ID)
		b.runs(runID, ok())
		if len(take()) > 0 {
			t.Fatal("posted before its timer came")
		}
		if w := b.job(j.ID).Wire(false); w.State.LastDeliveryStatus != "unknown" {
			t.Errorf("before: %+v", w.State)
		}
		b.ring()
		all := take()
		if len(all) != 1 {
			t.Fatalf("%d requests", len(all))
		}
		var p struct{ Event, JobID, JobName, RunID, Status, Text, Summary, SessionKey string }
		must(t, json.Unmarshal(all[0].body, &p))
		if p.Event != "cron.finished" || p.JobID != j.ID || p.JobName != "job" || p.RunID != runID || p.Status != "ok" || p.Text != "done" || p.SessionKey == "" {
			t.Errorf("payload %s", all[0].body)
		}
		h := all[0].header
		secret := b.job(j.ID).Wire(true).WebhookSecret
		at := h.Get("Webhook-Timestamp")
		if h.Get("Webhook-Id") != runID || at != strconv.FormatInt(b.Clock.Now().Unix(), 10) || !strings.HasPrefix(secret, "whsec_") {
			t.Errorf("headers %v", h)
		}
		if want := cron.Sign(secret, runID, at, all[0].body); h.Get("Webhook-Signature") != want || want == cron.Sign(secret, runID, "0", all[0].body) || want == cron.Sign("whsec_AAAA", runID, at, all[0].body) {
			t.Errorf("signature %q, want %q", h.Get("Webhook-Signature"), want)
		}
		w := b.job(j.ID).Wire(false)
		if w.State.LastDeliveryStatus != "delivered" || w.State.LastDelivered == nil || !*w.State.LastDelivered || w.WebhookSecret != "" {
			t.Errorf("after: %+v", w)
		}
		past, err := b.jobs.History(t.Context(), tenant, j.ID)
		if err != nil || len(past) != 1 || past[0].DeliveryStatus != "delivered" {
			t.Errorf("history %+v, %v", past, err)
		}
	})
}

// The signature of a known message, so that it stays what receivers compute.
func TestWebhook_TheSignatureIsThatOfTheStandardWebhooks(t *testing.T) {
	t.Parallel()
	got := cron.Sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Error(got)
	}
}

func TestWebhook_IsTriedAgainAndGivenUp(t *testing.T) {
	t.Parallel()
	b := fast(t)
	url, take := receiver(t, 500, 302, 404, 200)
	j := b.add(every(24*time.Hour), webhook(url))
	b.runs(b.fires(j.ID), broken("auth"))
	b.ring()
	for _, want := range []time.Duration{10 * time.Second, 30 * time.Second, time.Minute} {
		if p := b.ring(); len(p) != 1 || p[0] != want {
			t.Fatalf("tried again after %v, want %v", p, want)
		}
	}
	if n := len(take()); n != 4 || len(b.timers.take()) > 0 {
		t.Errorf("%d requests", n)
	}
	if w := b.job(j.ID).Wire(false); w.State.LastDeliveryStatus != "delivered" {
		t.Errorf("%+v", w.State)
	}

	url, take = receiver(t, 500)
	j = b.add(every(24*time.Hour), webhook(url))
	b.runs(b.fires(j.ID), broken("auth"))
	var all time.Duration
	for {
		p := b.ring()
		if len(p) == 0 {
			break
		}
		all += p[0]
	}
	if n := len(take()); n != 17 || all < 3*time.Hour {
		t.Errorf("%d tries within %v", n, all)
	}
	past, err := b.jobs.History(t.Context(), tenant, j.ID)
	if err != nil || past[0].DeliveryStatus != "not-delivered" || past[0].DeliveryError != "answered with status 500" || past[0].Status != "error" {
		t.Errorf("history %+v, %v", past, err)
	}
	if b.Log.Count("sesame") > 0 || b.Log.Count("whsec_") > 0 {
		t.Error("a secret is in the log")
	}
}

// Whoever does not answer has ten seconds.
func TestWebhook_HasTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := &http.Client{Transport: deaf{}}
		b := setup(t, tabletest.NewModel(), func(c *cron.Config) { c.HTTP = client })
		j := b.add(every(24*time.Hour), webhook("http://example.com/"))
		b.runs(b.fires(j.ID), ok())
		began := time.Now()
		b.ring()
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("it took %v", took)
		}
		if p := b.timers.take(); len(p) != 1 || p[0].after != 10*time.Second {
			t.Errorf("%+v", p)
		}
	})
}

// deaf never answers.
type deaf struct{}

func (deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// What a tenant names does not reach what only the machine may.
func TestWebhook_ReachesPublicAddressesOnly(t *testing.T) {
	t.Parallel()
	url, take := receiver(t, 200)
	b := fast(t, func(c *cron.Config) { c.HTTP = nil })
	j := b.add(every(24*time.Hour), webhook(url))
	b.runs(b.fires(j.ID), ok())
	b.ring()
	if len(take()) > 0 {
		t.Error("it was reached")
	}
	client := cron.PublicClient()
	for _, inside := range []string{"http://127.0.0.1:9/", "http://10.0.0.1/", "http://192.168.1.1/", "http://169.254.169.254/", "http://100.64.0.1/", "http://[::1]:9/", "http://[fd00::1]/", "http://[::ffff:127.0.0.1]:9/"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, inside, http.NoBody)
		must(t, err)
		answer, err := client.Do(req)
		if err == nil {
			_ = answer.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "not a public one") {
			t.Errorf("%s: %v", inside, err)
		}
	}
}

// A run that says nothing is not told; what has expired is given up.
func TestWebhook_OfNothing(t *testing.T) {
	t.Parallel()
	b := fast(t)
	j := b.add(every(time.Hour), webhook("http://127.0.0.1:1/"))
	b.runs(b.fires(j.ID), run.Outcome{Kind: run.OK})
	if w := b.job(j.ID).Wire(false); len(b.timers.take()) > 0 || w.State.LastDeliveryStatus != "not-requested" {
		t.Errorf("%+v", w.State)
	}
	runID := b.fires(j.ID)
	b.runs(runID, ok())
	b.drop(runID)
	b.ring()
	if w := b.job(j.ID).Wire(false); w.State.LastDeliveryStatus != "not-delivered" || len(b.timers.take()) > 0 {
		t.Errorf("%+v", w.State)
	}
	for _, body := range []string{"", "{}", "[]", `{"kind":"wake"}`} {
		if err := b.jobs.HandleTimer(t.Context(), []byte(body)); err == nil {
			t.Errorf("%q was taken", body)
		}
	}
}
