package storm

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"laneway/shared/client"
	"laneway/shared/protocol"
	"laneway/test/mockmodel"
)

// screen is what a person sees who only has a client's chat events.
type screen struct {
	mu   sync.Mutex
	text map[string]string // by run: what is being written
	ends map[string]int    // by run
	bad  []string
}

func newScreen() *screen { return &screen{text: map[string]string{}, ends: map[string]int{}} }

var said = regexp.MustCompile(`<\d+\.\d+>`)

// take draws a chat event.
func (s *screen) take(e client.Event) {
	if e.Name != protocol.EventChat {
		return
	}
	var c struct {
		RunID   string `json:"runId"`
		State   string `json:"state"`
		Delta   string `json:"deltaText"`
		Replace bool   `json:"replace"`
		Message *struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := json.Unmarshal(e.Payload, &c); err != nil {
		s.bad = append(s.bad, err.Error())
		return
	}
	switch c.State {
	case protocol.ChatStateDelta:
		s.draw(c.RunID, c.Delta, c.Replace)
		return
	case protocol.ChatStateStatus:
		return // says how it goes, and shows nothing
	}
	s.ends[c.RunID]++
	if c.Message == nil {
		return
	}
	whole := mockmodel.Text(c.Message.Content)
	s.doubled(c.RunID, whole)
	if c.State == protocol.ChatStateFinal && s.text[c.RunID] != "" && !strings.Contains(squash(s.text[c.RunID]), squash(whole)) {
		s.bad = append(s.bad, fmt.Sprintf("%s: drawn %q, the end says %q", c.RunID, s.text[c.RunID], whole))
	}
}

// draw adds to what is being written.
func (s *screen) draw(run, delta string, replace bool) {
	if s.ends[run] > 0 {
		s.bad = append(s.bad, fmt.Sprintf("%s: text after its end: %q", run, delta))
	}
	if replace {
		s.text[run] = ""
	}
	s.text[run] += delta
	s.doubled(run, s.text[run])
}

func squash(s string) string { return strings.Join(strings.Fields(s), " ") }

func (s *screen) doubled(run, text string) {
	seen := map[string]bool{}
	for _, piece := range said.FindAllString(text, -1) {
		if seen[piece] {
			s.bad = append(s.bad, fmt.Sprintf("%s: %s is there twice: %q", run, piece, text))
			return
		}
		seen[piece] = true
	}
}

// ended is how often the screen was told the end of a run.
func (s *screen) ended(run string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ends[run]
}

func (s *screen) problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bad
}
