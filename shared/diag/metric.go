package diag

import (
	"encoding/json"
	"io"
	"sync"

	"laneway/shared/clock"
	"laneway/shared/lane"
	"laneway/shared/meter"
	"laneway/shared/run"
)

// Names that alarms and dashboards look at.
const (
	MetricNamespace = "Laneway"
	MetricDimension = "Stack"
	// MetricStuck counts sessions that a look found with work and nobody at it, for
	// longer than Thresholds.Warn. It is written only where there are any: absent
	// means none.
	MetricStuck = "StuckSessions"

	MetricEnded     = "RunsEnded"
	MetricFailed    = "RunsFailed" // of them, with an error or out of time
	MetricQueueWait = "QueueWait"  // ms from accept to start
	MetricRunTime   = "RunTime"    // ms from start to end
	MetricSteps     = "Steps"      // model calls
	MetricPosts     = "Posts"      // messages to connections that the run needed up to its end

	// MetricFallback counts messages that came for a run when it had just ended.
	MetricFallback = lane.MetricFallback
)

// Units of metrics.
const (
	unitCount = "Count"
	unitMs    = "Milliseconds"
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
	e.write([]metric{{name, unitCount}}, []float64{n})
}

// Run writes what there is to say of a run that has ended.
func (e *EMF) Run(st run.Status) {
	c := st.Counted()
	failed := 0.0
	if o := st.Outcome; o != nil && (o.Kind == run.Failed || o.Kind == run.Timeout) {
		failed = 1
	}
	metrics := []metric{{MetricEnded, unitCount}, {MetricFailed, unitCount}, {MetricSteps, unitCount}, {MetricPosts, unitCount}}
	values := []float64{1, failed, float64(c.Step), c.Used[meter.PostCalls]}
	if st.StartedAt > 0 { // else it ended before it began
		metrics = append(metrics, metric{MetricQueueWait, unitMs}, metric{MetricRunTime, unitMs})
		values = append(values, float64(st.StartedAt-st.AcceptedAt), float64(st.EndedAt-st.StartedAt))
	}
	e.write(metrics, values)
}

// write writes one line of metrics and their values.
func (e *EMF) write(metrics []metric, values []float64) {
	c := e.Clock
	if c == nil {
		c = clock.System{}
	}
	members := map[string]any{
		"_aws": emf{
			Timestamp: clock.Millis(c.Now()),
			CloudWatchMetrics: []directive{{
				Namespace: MetricNamespace, Dimensions: [][]string{{MetricDimension}}, Metrics: metrics,
			}},
		},
		MetricDimension: e.Stack,
	}
	for i, m := range metrics {
		members[m.Name] = values[i]
	}
	line, err := json.Marshal(members)
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, _ = e.W.Write(append(line, '\n'))
}
