package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"laneway/shared/table"
)

// call is a request of a function to a service.
type call struct {
	Service, Op string
	Begin, End  time.Time
	// Reads and Writes are the units that DynamoDB says it took, by table without prefix.
	Reads, Writes map[string]float64
	Bytes         int    // of a post
	About         string // key of a read, or table and kinds of a write
}

// wire is what lies between the functions and the endpoint: it hands everything on and
// writes down what it was. Posts to connections it answers itself, as API Gateway does
// for a client that is there.
type wire struct {
	prefix string // of the tables' names
	proxy  *httputil.ReverseProxy

	mu    sync.Mutex
	calls []call
}

func newWire(endpoint, prefix string) (*wire, error) {
	to, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	w := &wire{prefix: prefix}
	w.proxy = &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host },
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
	}
	return w, nil
}

// ServeHTTP implements http.Handler.
func (w *wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	c := call{Begin: time.Now(), Reads: map[string]float64{}, Writes: map[string]float64{}}
	c.Service, c.Op = named(r)
	if c.Service == "@connections" {
		n, _ := io.Copy(io.Discard, r.Body)
		c.Bytes = int(n)
		w.record(c)
		return
	}
	indexed := 0.0
	if c.Service == "DynamoDB" {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadGateway)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		c.About = sortKeys(body)
		if c.Op == "TransactWriteItems" {
			indexed = indexWrites(body)
		}
	}
	answer := &copied{ResponseWriter: rw}
	w.proxy.ServeHTTP(answer, r)
	if c.Service == "DynamoDB" {
		c.units(answer.body.Bytes(), w.prefix)
		if len(c.Writes) > 0 {
			c.Writes[table.Sessions] += indexed
		}
	}
	w.record(c)
}

func (w *wire) record(c call) {
	c.End = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, c)
}

// take gives what was written down since the last time.
func (w *wire) take() []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

// named says which service and operation a request is for.
func named(r *http.Request) (service, op string) {
	if strings.Contains(r.URL.Path, "/@connections/") {
		return "@connections", r.Method
	}
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		service, op, _ = strings.Cut(target, ".")
		service, _, _ = strings.Cut(service, "_")
		return service, op
	}
	return "S3", r.Method
}

// indexWrites is what a transaction writes into indexes, which DynamoDB bills and
// MiniStack leaves out of a transaction's answer: an entry of a session that becomes
// active, and one that goes and one that comes where a session moves among the recent.
func indexWrites(body []byte) float64 {
	return float64(bytes.Count(body, []byte(`"activePk"`)) + 2*bytes.Count(body, []byte(`"recentPk"`)))
}

// sortKey finds the sort keys that a request names.
var sortKey = regexp.MustCompile(`"(?:sk|:[a-z0-9]+)":\{"S":"([^"]{1,24})`)

func sortKeys(body []byte) string {
	var found []string
	for _, m := range sortKey.FindAllSubmatch(body, 4) {
		found = append(found, string(m[1]))
	}
	return strings.Join(found, " ")
}

// units reads the consumed capacity from an answer of DynamoDB: one, or a list.
func (c *call) units(answer []byte, prefix string) {
	type capacity struct {
		TableName                                            string
		CapacityUnits, ReadCapacityUnits, WriteCapacityUnits float64
	}
	var one struct{ ConsumedCapacity capacity }
	var many struct{ ConsumedCapacity []capacity }
	if json.Unmarshal(answer, &many) != nil {
		if json.Unmarshal(answer, &one) != nil {
			return
		}
		many.ConsumedCapacity = []capacity{one.ConsumedCapacity}
	}
	for _, u := range many.ConsumedCapacity {
		name := strings.TrimPrefix(u.TableName, prefix)
		switch {
		case u.WriteCapacityUnits > 0 || u.ReadCapacityUnits > 0:
			c.Writes[name] += u.WriteCapacityUnits
			c.Reads[name] += u.ReadCapacityUnits
		case c.Op == "GetItem" || c.Op == "Query" || c.Op == "BatchGetItem":
			c.Reads[name] += u.CapacityUnits
		default:
			c.Writes[name] += u.CapacityUnits
		}
	}
}

// copied keeps what it writes.
type copied struct {
	http.ResponseWriter
	body bytes.Buffer
}

func (c *copied) Write(b []byte) (int, error) {
	c.body.Write(b)
	return c.ResponseWriter.Write(b)
}

// chain is the length of the longest row of calls each of which began when the one
// before it had ended, of those that ended before a time: what one waits for.
func chain(calls []call, before time.Time) int {
	longest := 0
	lengths := make([]int, len(calls))
	for i := range calls { // in the order in which they ended
		if calls[i].End.After(before) {
			continue
		}
		lengths[i] = 1
		for j := range i {
			if !calls[j].End.After(calls[i].Begin) && lengths[j] > 0 {
				lengths[i] = max(lengths[i], lengths[j]+1)
			}
		}
		longest = max(longest, lengths[i])
	}
	return longest
}

// list shows requests and when they were.
func list(what string, since time.Time, calls []call) {
	fmt.Fprintf(os.Stderr, "%s:\n", what)
	for _, c := range calls {
		fmt.Fprintf(os.Stderr, "  %5d to %5d ms  %s %s %s writes %v reads %v\n",
			c.Begin.Sub(since).Milliseconds(), c.End.Sub(since).Milliseconds(), c.Service, c.Op, c.About, c.Writes, c.Reads)
	}
}
