package queue

import (
	"context"
	"time"
)

// TimerMaxReceives is how often a timer may fail before it is a dead letter.
const TimerMaxReceives = 5

// DeadLetter is a message that failed MaxReceives times. Nothing is lost with it:
// the tables know its work, and the watchdog sends a new wake-up.
type DeadLetter struct {
	ID       string    `json:"id"`
	Lane     Lane      `json:"lane,omitempty"` // empty for a timer
	Group    string    `json:"group,omitempty"`
	Body     []byte    `json:"body"`
	Receives int       `json:"receives"`
	At       time.Time `json:"at"` // when it was given up
}

// DeadLetterStore is what an operator does with dead letters. Each adapter has it.
type DeadLetterStore interface {
	// DeadLetters lists those of a lane, at most limit, those of a group in their
	// order. The empty lane is the timers.
	DeadLetters(ctx context.Context, lane Lane, limit int) ([]DeadLetter, error)
	// Redrive puts those of a lane back as new messages, those of a group in their
	// order, and says how many; Purge forgets them.
	Redrive(ctx context.Context, lane Lane) (int, error)
	Purge(ctx context.Context, lane Lane) (int, error)
}
