package cost_test

import (
	"math"
	"testing"

	"laneway/shared/cost"
	"laneway/shared/meter"
	"laneway/shared/model"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestOf_CloudAndTokens(t *testing.T) {
	t.Parallel()
	m := cost.Of(cost.Used{
		Counts:   map[meter.Name]float64{meter.TableWriteUnits: 20, meter.TableReadUnits: 8, meter.TableCalls: 12, meter.GBSeconds: 1},
		Provider: "anthropic", Model: "claude-sonnet-5-5", Tokens: model.Usage{Input: 1000, Output: 100},
	})
	cloud := 20*0.000000625 + 8*0.000000125 + 0.0000133334
	if !near(m.Cloud, cloud) || !near(m.USD, cloud+0.003+0.0015) || len(m.Unpriced) != 0 {
		t.Errorf("%+v", m)
	}
}

func TestOf_ADatedVersionHasItsModelsPrice(t *testing.T) {
	t.Parallel()
	m := cost.Of(cost.Used{Provider: "openai", Model: "gpt-5.4-2026-10-01", Tokens: model.Usage{Output: 1_000_000}})
	if m.USD != 15 {
		t.Errorf("%+v", m)
	}
	if m := cost.Of(cost.Used{Provider: "openai", Model: "gpt-5.4-mini", Tokens: model.Usage{Output: 1}}); len(m.Unpriced) != 1 {
		t.Errorf("another model: %+v", m)
	}
}

func TestOf_WhatHasNoPriceIsNamed(t *testing.T) {
	t.Parallel()
	m := cost.Of(cost.Used{
		Counts:   map[meter.Name]float64{"something.new": 3},
		Provider: "openai", Model: "llama", Tokens: model.Usage{Input: 1},
	})
	if m.USD != 0 || len(m.Unpriced) != 2 {
		t.Errorf("%+v", m)
	}
}

func TestSum(t *testing.T) {
	t.Parallel()
	got := cost.Sum(map[meter.Name]float64{"a": 1}, nil, map[meter.Name]float64{"a": 2, "b": 1})
	if got["a"] != 3 || got["b"] != 1 {
		t.Error(got)
	}
}
