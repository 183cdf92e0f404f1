package lineartest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"laneway/shared/queue"
)

var errLost = errors.New("the answer was lost")

// lossy loses requests and answers.
type lossy struct {
	queue.Sender
	mu  sync.Mutex
	rnd *rand.Rand
}

func (s *lossy) Send(ctx context.Context, lane queue.Lane, group, dedup string, body []byte) error {
	s.mu.Lock()
	dice := s.rnd.IntN(10)
	s.mu.Unlock()
	if dice == 0 {
		return errLost
	}
	if err := s.Sender.Send(ctx, lane, group, dedup, body); err != nil {
		return err
	}
	if dice == 1 {
		return errLost
	}
	return nil
}

// wrongSenders break the promises of the port, each another one.
func wrongSenders() map[string]func(queue.Sender) queue.Sender {
	return map[string]func(queue.Sender) queue.Sender{
		"the same is taken twice":      func(s queue.Sender) queue.Sender { return &twice{Sender: s} },
		"says taken, and forgets":      func(s queue.Sender) queue.Sender { return &forgetful{Sender: s} },
		"one is overtaken by the next": func(s queue.Sender) queue.Sender { return &slow{Sender: s, kept: map[string]kept{}} },
		"a body goes to another group": func(s queue.Sender) queue.Sender { return &astray{Sender: s} },
	}
}

// twice sends each fourth message under two ids.
type twice struct {
	queue.Sender
	mu sync.Mutex
	n  int
}

func (s *twice) Send(ctx context.Context, lane queue.Lane, group, dedup string, body []byte) error {
	s.mu.Lock()
	s.n++
	again := s.n%4 == 0
	s.mu.Unlock()
	if again {
		if err := s.Sender.Send(ctx, lane, group, dedup+"/again", body); err != nil {
			return err
		}
	}
	return s.Sender.Send(ctx, lane, group, dedup, body)
}

// forgetful forgets each fifth message, but not the last of a group, for which is waited.
type forgetful struct {
	queue.Sender
	mu sync.Mutex
	n  int
}

func (s *forgetful) Send(ctx context.Context, lane queue.Lane, group, dedup string, body []byte) error {
	s.mu.Lock()
	s.n++
	forget := s.n%5 == 0 && !strings.HasPrefix(string(body), end)
	s.mu.Unlock()
	if forget {
		return nil
	}
	return s.Sender.Send(ctx, lane, group, dedup, body)
}

// kept is a message that was held back.
type kept struct {
	dedup string
	body  []byte
}

// slow holds one message of each group back until the next one was sent.
type slow struct {
	queue.Sender
	mu   sync.Mutex
	kept map[string]kept
}

func (s *slow) Send(ctx context.Context, lane queue.Lane, group, dedup string, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.kept[group]
	if !ok {
		s.kept[group] = kept{dedup, body}
		return nil
	}
	if err := s.Sender.Send(ctx, lane, group, dedup, body); err != nil || old.body == nil {
		return err
	}
	s.kept[group] = kept{}
	return s.Sender.Send(ctx, lane, group, old.dedup, old.body)
}

// astray sends the third message elsewhere.
type astray struct {
	queue.Sender
	mu sync.Mutex
	n  int
}

func (s *astray) Send(ctx context.Context, lane queue.Lane, group, dedup string, body []byte) error {
	s.mu.Lock()
	s.n++
	if s.n == 3 {
		group = fmt.Sprintf("g%d", (int(group[1]-'0')+1)%groups)
	}
	s.mu.Unlock()
	return s.Sender.Send(ctx, lane, group, dedup, body)
}
