package stream_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"testing/synctest"

	"laneway/shared/protocol"
	"laneway/shared/stream"
)

// strict decodes JSON that must have no member that into does not know.
func strict(tb testing.TB, raw []byte, into any) {
	tb.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		tb.Errorf("%s: %v", raw, err)
	}
}

// TestS4_FramesAreThoseOfTheProtocol reads every frame of a run as the types of
// the wire contract, which know all members there are.
func TestS4_FramesAreThoseOfTheProtocol(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a, c := w.connect("a", tenant, stream.CapTools), w.connect("c", tenant)
		w.subscribe("c", sessKey)
		i := info("a")
		i.Spawned, i.Heartbeat = "agent:main:parent", true
		s := w.open(i)
		turn(w, s)
		s.BeginMessage()
		s.Text("wrong")
		synctest.Wait()
		s.Replace("right")
		w.commit(s.Prepare(stream.Chat(obj{
			"state": protocol.ChatStateFinal, "stopReason": "stop", "message": protocol.AssistantMessage("right", 1),
		})))
		s.Close(t.Context())
		chats := 0
		for _, f := range append(a.got, c.got...) {
			var outer struct {
				Type, Event string
				Payload     json.RawMessage
			}
			strict(t, f.raw, &outer)
			if outer.Event == protocol.EventChat {
				chats++
				var common protocol.Chat
				switch f.Payload.State {
				case protocol.ChatStateDelta:
					var p protocol.ChatDelta
					strict(t, outer.Payload, &p)
					common = p.Chat
				default:
					var p protocol.ChatFinal
					strict(t, outer.Payload, &p)
					common = p.Chat
				}
				if common.RunID != runID || common.SpawnedBy != i.Spawned || common.State == "" || common.Seq == 0 {
					t.Errorf("%s", f.raw)
				}
				continue
			}
			var p protocol.AgentEvent
			strict(t, outer.Payload, &p)
			if p.SpawnedBy != i.Spawned || !p.IsHeartbeat || p.TS == 0 || p.Seq == 0 {
				t.Errorf("%s", f.raw)
			}
			if p.Stream == protocol.StreamAssistant || p.Stream == protocol.StreamThinking {
				var text protocol.AssistantText
				strict(t, p.Data, &text)
			}
		}
		if chats < 5 {
			t.Errorf("%d chat events", chats)
		}
	})
}

func TestS4_ChatEventThatIsTooLargeStaysWithinItsSchema(t *testing.T) {
	t.Parallel()
	inWorld(t, nil, func(w *world) {
		t := w.t
		a := w.connect("a", tenant)
		s := w.open(info("a"))
		members := manyMembers(20_000)
		members["state"], members["errorMessage"] = "error", "it failed"
		w.commit(s.Prepare(stream.Chat(members)))
		s.Close(t.Context())
		if len(a.got) != 1 || a.maxFrame > frameLimit {
			t.Fatalf("%d frames, the largest of %d bytes", len(a.got), a.maxFrame)
		}
		if bytes.Contains(a.got[0].raw, []byte("truncated")) {
			t.Errorf("%s", a.got[0].raw)
		}
	})
}
