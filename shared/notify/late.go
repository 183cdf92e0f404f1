package notify

import (
	"context"
	"errors"
	"time"

	"laneway/shared/protocol"
	"laneway/shared/push"
	"laneway/shared/queue"
	"laneway/shared/run"
	"laneway/shared/stream"
)

// maxLate bounds the frames of one timer, in bytes: they travel in base64.
const maxLate = queue.MaxBody*3/4 - 8<<10

// Late hands what could not be delivered in time to the timer queue, what goes to one
// connection in its order. An event that is too large for it is dropped: it is in the
// log, for whoever subscribes again. A reply is made smaller.
func (s *Service) Late(ctx context.Context, st run.Status, unsent []stream.Unsent) error {
	byConn := make(map[string]*timer)
	var order []*timer
	size := make(map[string]int)
	for _, u := range unsent {
		frame := u.Frame
		if len(frame) > maxLate {
			if frame = s.smaller(st, u); frame == nil {
				s.Log.Warn("event too large to be sent later", "run", st.Ref.Run, "bytes", len(u.Frame))
				continue
			}
		}
		id := u.To.ConnectionID
		t := byConn[id]
		if t == nil || size[id]+len(frame) > maxLate {
			t = &timer{Kind: timerPost, Conn: id, Callback: u.To.Callback}
			byConn[id], size[id] = t, 0
			order = append(order, t)
		}
		t.Frames = append(t.Frames, frame)
		size[id] += len(frame)
	}
	behind := make(map[string]time.Duration)
	for _, t := range order {
		behind[t.Conn] += time.Second // a second timer of a connection comes after the first
		if err := s.after(ctx, behind[t.Conn], *t); err != nil {
			return err
		}
	}
	return nil
}

// PostLater hands frames of one connection to the timer queue, in their order: what a
// function could not post behind its response.
func (s *Service) PostLater(ctx context.Context, to push.Target, frames [][]byte) error {
	unsent := make([]stream.Unsent, len(frames))
	for i, f := range frames {
		unsent[i] = stream.Unsent{To: to, Frame: f}
	}
	return s.Late(ctx, run.Status{}, unsent)
}

// smaller is a reply within a timer's limit; nil for what is no reply.
func (s *Service) smaller(st run.Status, u stream.Unsent) []byte {
	if u.Waiter == nil || st.Outcome == nil {
		return nil
	}
	return s.final(st, *u.Waiter, protocol.MaxFrameOut)
}

// lateTries bounds how often unsent frames are tried again: with its pauses about
// five minutes, longer than a connection that cannot take a frame lives.
const lateTries = 8

func (s *Service) late(ctx context.Context, t timer) error {
	for len(t.Frames) > 0 {
		err := s.post(ctx, run.Waiter{ConnectionID: t.Conn, Callback: t.Callback}, t.Frames[0])
		switch {
		case err == nil, errors.Is(err, push.ErrTooLarge):
			t.Frames = t.Frames[1:]
			t.Tries = 0
		case t.Tries >= lateTries:
			s.Log.Warn("frames given up", "connection", t.Conn, "frames", len(t.Frames))
			return nil
		default:
			t.Tries++
			return s.after(ctx, time.Second<<t.Tries, t)
		}
	}
	return nil
}
