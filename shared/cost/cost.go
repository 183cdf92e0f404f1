// Package cost turns what a run has used into money, by a dated list of prices.
//
// Guarantees: the same counts give the same money; what has no price is named as
// unpriced and never counted as free; prices come from one file that says when and
// where they were read.
package cost

import (
	_ "embed" // the list of prices
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strings"

	"laneway/shared/meter"
	"laneway/shared/model"
)

//go:embed prices.json
var pricesJSON []byte

type list struct {
	Date   string              `json:"date"`
	Region string              `json:"region"`
	Source string              `json:"source"`
	Units  map[meter.Name]unit `json:"units"`
	Models map[string]tokens   `json:"models"` // USD a million tokens
}

type unit struct {
	USD float64 `json:"usd"`
	Per string  `json:"per"`
}

// tokens has the members of model.Price.
type tokens struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
}

var prices = func() list {
	var l list
	if err := json.Unmarshal(pricesJSON, &l); err != nil {
		panic(fmt.Sprintf("prices.json: %v", err)) // a mistake of the build, seen by every test
	}
	return l
}()

// Used is what a run has used.
type Used struct {
	Counts   map[meter.Name]float64
	Provider string
	Model    string
	Tokens   model.Usage
	// Price that was configured for the model; nil: the list's.
	Price *model.Price
}

// Money is what it cost.
type Money struct {
	USD      float64            `json:"usd"`                // all that has a price
	Cloud    float64            `json:"cloudUsd"`           // without tokens
	Items    map[string]float64 `json:"items,omitempty"`    // USD
	Unpriced []string           `json:"unpriced,omitempty"` // what was used and has no price here
	Prices   string             `json:"prices"`             // date of the list
}

// notBilled are counts that say something but cost nothing by themselves.
var notBilled = map[meter.Name]bool{meter.TableCalls: true, meter.PostCalls: true}

// Of prices what was used.
func Of(u Used) Money {
	m := Money{Items: map[string]float64{}, Prices: prices.Date}
	for name, n := range u.Counts {
		price, ok := prices.Units[name]
		switch {
		case n == 0 || notBilled[name]:
		case !ok:
			m.Unpriced = append(m.Unpriced, string(name))
		default:
			m.Items[string(name)] = n * price.USD
			m.Cloud += n * price.USD
		}
	}
	m.USD = m.Cloud
	if u.Tokens != (model.Usage{}) {
		t, ok := modelPrice(u.Provider, u.Model)
		if u.Price != nil {
			t, ok = tokens(*u.Price), true
		}
		if ok {
			usd := (float64(u.Tokens.Input)*t.Input + float64(u.Tokens.Output)*t.Output +
				float64(u.Tokens.CacheRead)*t.CacheRead + float64(u.Tokens.CacheWrite)*t.CacheWrite) / 1e6
			m.Items["tokens"] = usd
			m.USD += usd
		} else {
			m.Unpriced = append(m.Unpriced, "tokens of "+u.Provider+"/"+u.Model)
		}
	}
	sort.Strings(m.Unpriced)
	m.USD, m.Cloud = round(m.USD), round(m.Cloud)
	for k, v := range m.Items {
		m.Items[k] = round(v)
	}
	return m
}

// modelPrice finds a model's price: its own, or that of the id that it is a dated
// version of.
func modelPrice(provider, id string) (tokens, bool) {
	if t, ok := prices.Models[provider+"/"+id]; ok {
		return t, true
	}
	for name, t := range prices.Models {
		if rest, ok := strings.CutPrefix(provider+"/"+id, name); ok && strings.HasPrefix(rest, "-2") {
			return t, true
		}
	}
	return tokens{}, false
}

// round keeps a tenth of a nanodollar: sums of floats end in noise.
func round(usd float64) float64 { return math.Round(usd*1e10) / 1e10 }

// Accept is what a run uses before its first attempt and around it, as `make bench-cloud`
// counts it: the transaction of record and session with its entry in an index, now and
// then the connection's row, the wake-up that is sent, received and deleted, the request
// and its reply, and the gateway's invocation. It is added where a run's end is priced:
// the accept cannot know its own cost before it has made it.
var Accept = map[meter.Name]float64{
	meter.TableReadUnits: 1, meter.TableWriteUnits: 5, meter.QueueCalls: 3, meter.PostUnits: 2, meter.FunctionCalls: 1,
	meter.GBSeconds: 0.01,
}

// Sum adds counts up.
func Sum(all ...map[meter.Name]float64) map[meter.Name]float64 {
	out := map[meter.Name]float64{}
	for _, counts := range all {
		for k, v := range counts {
			out[k] += v
		}
	}
	return out
}
