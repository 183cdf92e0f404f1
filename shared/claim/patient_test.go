package claim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"laneway/shared/claim"
	"laneway/shared/clock/clocktest"
	"laneway/shared/lane/lanetest"
	"laneway/shared/table"
	"laneway/shared/table/faulty"
	"laneway/shared/table/tabletest"
)

func TestC6_ReadsWaitOutThrottlesAndLostAnswers(t *testing.T) {
	t.Parallel()
	k := table.Key{Table: table.Sessions, PK: "p", SK: "s"}
	for _, fault := range []faulty.Fault{faulty.Throttle, faulty.LostAnswer, faulty.LostRequest} {
		model := tabletest.NewModel()
		_, err := model.Write(t.Context(), table.Op{Kind: table.Put, Key: k, Item: table.Attrs{"a": "b"}})
		must(t, err)
		fails := 0
		p := claim.Patient(faulty.New(model, faulty.Config{At: func(faulty.Call) faulty.Fault {
			if fails++; fails%4 != 0 {
				return fault
			}
			return faulty.None
		}}), clocktest.New(), time.Minute)
		it, err := p.Get(t.Context(), k)
		if err != nil || it.Attrs.Str("a") != "b" {
			t.Errorf("get: %v, %v", it, err)
		}
		page, err := p.Query(t.Context(), table.Query{Table: table.Sessions, PK: "p"})
		if err != nil || len(page.Items) != 1 {
			t.Errorf("query: %v, %v", page, err)
		}
		if _, err := p.Index(t.Context(), table.IndexQuery{Table: table.Sessions, Index: table.IndexActive, PK: "x"}); err != nil {
			t.Errorf("index: %v", err)
		}
		if _, err := p.Get(t.Context(), table.Key{Table: table.Sessions, PK: "p", SK: "none"}); !errors.Is(err, table.ErrNotFound) {
			t.Errorf("an absent item: %v", err)
		}
	}
}

func TestC6_PatienceHasAnEnd(t *testing.T) {
	t.Parallel()
	c := clocktest.New()
	tries := 0
	err := claim.Retry(t.Context(), c, 5*time.Second, func() error {
		if tries++; tries%10 == 0 {
			c.Advance(time.Second)
		}
		return table.ErrThrottled
	})
	if !errors.Is(err, table.ErrThrottled) || tries < 40 || tries > 60 {
		t.Errorf("%v after %d tries", err, tries)
	}
	c.Short = 0
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := claim.Retry(ctx, c, time.Hour, func() error { return table.ErrConflict }); !errors.Is(err, table.ErrConflict) || !errors.Is(err, context.Canceled) {
		t.Errorf("of a context that ended: %v", err)
	}
}

func TestC3_WhatWasBegunIsToldBehindTheEndOfItsContext(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *lanetest.World) {
		w.Accept("r1")
		ctx, cancel := context.WithCancel(t.Context())
		m := w.Meta()
		h, err := w.Claims.Start(ctx, m, m.Pending[0])
		must(t, err)
		cancel()
		if h.Fresh() == nil || !h.Trusted() {
			t.Errorf("fresh: %v, trusted: %v", h.Fresh(), h.Trusted())
		}
		w.Clock.Advance(w.Times.Trust + time.Millisecond)
		if h.Trusted() {
			t.Error("trusted though its lease is old")
		}
		must(t, h.Release(t.Context()))
		if h.Trusted() {
			t.Error("trusted though it was released")
		}
	})
}
