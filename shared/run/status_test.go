package run_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"laneway/shared/meter"
	"laneway/shared/model"
	"laneway/shared/run"
	"laneway/shared/table"
	"laneway/test/backends"
)

func TestStatus_ComesBackAsItWas(t *testing.T) {
	t.Parallel()
	url := "https://x"
	whole := run.Status{
		Ref: run.RefOf("t", "r"), RunID: "r", SessionKey: "agent:main:x", AgentID: "main", Lane: "cron", Method: "agent", Seq: 7,
		RequestHash: "h", WriteID: "w", Origin: &run.Waiter{ConnectionID: "c", Callback: "cb", RequestID: "q", Kind: run.WaitFinal},
		Input: run.Input{Message: "m\x00\u2028ü", TimeoutMs: -1, Attachments: []byte(`[{"a":1}]`), SuppressUser: true},
		State: run.Ended, Disposition: run.Disposition{Kind: "queued", Position: 3}, AcceptedAt: 1, StartedAt: 2, EndedAt: 3, Attempt: 4,
		SessionID: "sid", UserSeq: 5, Into: "other", NextEvent: 6, TermEvent: 5, Checkpoint: []byte(`{"step":1}`), OriginLease: 9, Token: "tok", ExpiresAt: 10,
		Outcome: &run.Outcome{
			Kind: run.OK, StopReason: "stop", Payloads: []run.Payload{{Text: "a", MediaURL: &url}, {Text: "b"}}, Text: "a\n\nb",
			Usage: &model.Usage{Input: 1}, Used: map[meter.Name]float64{"x": 1},
		},
	}
	least := run.Status{Ref: run.RefOf("t", "r2"), RunID: "r2", State: run.Pending}
	backends.Each(t, func(t *testing.T, store table.Store) {
		for _, want := range []run.Status{whole, least} {
			item, err := want.Item()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Write(t.Context(), table.Op{Kind: table.Put, Key: want.StatusKey(), Item: item}); err != nil {
				t.Fatal(err)
			}
			got, err := run.Load(t.Context(), store, want.Ref)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		if _, err := run.Load(t.Context(), store, run.RefOf("other", "r")); !errors.Is(err, run.ErrUnknown) {
			t.Errorf("another tenant sees it: %v", err)
		}
	})
}

// A run that lives never expires by itself.
func TestStatus_OfALiveRunHasNoExpiry(t *testing.T) {
	t.Parallel()
	st := run.Status{Ref: run.RefOf("t", "r"), State: run.Started}
	item, err := st.Item()
	if _, there := item[table.TTLAttr]; there || err != nil {
		t.Errorf("item %v, %v", item, err)
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 65)
	for id, whole := range map[string]bool{"r": true, strings.Repeat("x", 64): true, long: false, "~r": false} {
		got := run.Short(id)
		if (got == id) != whole || len(got) > 64 {
			t.Errorf("Short(%q) = %q", id, got)
		}
		if !whole && !strings.HasPrefix(got, "~") {
			t.Errorf("the hash of %q looks like an id: %q", id, got)
		}
		if run.Short(got) == got && !whole {
			t.Errorf("an id can be chosen that meets the hash of %q", id)
		}
	}
	if run.Short(long) == run.Short(long+"y") {
		t.Error("two ids meet")
	}
}

func TestK2_RunsOfTwoTenantsNeverMeet(t *testing.T) {
	t.Parallel()
	a, b := run.RefOf("a", "b#R#c"), run.RefOf("a-b", "c")
	if a.PK() == b.PK() || a.StatusKey() == b.StatusKey() {
		t.Error("they meet")
	}
}
