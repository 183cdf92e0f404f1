package diag

import (
	"encoding/json"
	"io"
	"sync"

	"laneway/shared/clock"
)

// Names that alarms and dashboards look at.
const (
	MetricNamespace = "Laneway"
	MetricDimension = "Stack"
	// MetricStuck counts sessions that a look found with work and nobody at it, for
	// longer than Thresholds.Warn. It is written only where there are any: absent
	// means none.
	MetricStuck = "StuckSessions"
)

// EMF writes metrics as lines of CloudWatch's embedded metric format: what a function
// writes to its log becomes metrics without a call. Its methods may be called by many
// goroutines.
type EMF struct {
	W     io.Writer
	Stack string      // value of the one dimension
	Clock clock.Clock // nil: the machine's

	mu sync.Mutex
}

// emf is the part of a line that says which of its members are metrics.
type emf struct {
	Timestamp         int64       `json:"Timestamp"` // ms
	CloudWatchMetrics []directive `json:"CloudWatchMetrics"`
}

type directive struct {
	Namespace  string     `json:"Namespace"`
	Dimensions [][]string `json:"Dimensions"`
	Metrics    []metric   `json:"Metrics"`
}

type metric struct {
	Name string `json:"Name"`
	Unit string `json:"Unit"`
}

// Count writes a count. What cannot be written is lost: a metric is no reason to fail.
func (e *EMF) Count(name string, n float64) {
	c := e.Clock
	if c == nil {
		c = clock.System{}
	}
	line, err := json.Marshal(map[string]any{
		"_aws": emf{
			Timestamp: clock.Millis(c.Now()),
			CloudWatchMetrics: []directive{{
				Namespace: MetricNamespace, Dimensions: [][]string{{MetricDimension}}, Metrics: []metric{{name, "Count"}},
			}},
		},
		MetricDimension: e.Stack,
		name:            n,
	})
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, _ = e.W.Write(append(line, '\n'))
}
