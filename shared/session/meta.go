package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"laneway/shared/table"
)

// Attributes of META. Short: the item is written several times in a run and is
// billed by its size.
const (
	AttrToken     = "tok"   // fencing token, only grows
	AttrOwner     = "own"   // who holds the claim: an attempt of a run, or a command
	AttrLease     = "lease" // ms: until when the claim holds; of a free one, when it was released
	AttrNest      = "nest"  // further holds of the same owner
	AttrWrite     = "wid"   // id of the holder's last write: settles lost answers (C5)
	AttrHead      = "head"  // sequence of the transcript's last row
	AttrBase      = "base"  // first row that a model may see: the last reset, or what a compaction kept; 0: all
	AttrSessionID = "sid"
	AttrActive    = "act" // short id of the run that has begun and not ended
	AttrActiveSeq = "actSeq"
	AttrActiveLn  = "actLane"
	AttrActiveAt  = "actAt" // ms: when its first attempt began; the log entry of its start
	AttrAttempt   = "att"   // attempts of the active run
	AttrStalled   = "stall" // attempts in a row without progress
	AttrWake      = "wake"  // ms: the active run sleeps until then
	AttrProgress  = "prog"  // last sign of life of the run under the claim, see Progress
	AttrSeq       = "seq"   // accept sequence, only grows
	AttrPending   = "pend"  // map: accept sequence -> lane|short run id
	AttrPendingN  = "pendN"
	AttrDebounce  = "deb"    // ms: messages that were queued wait until then, each arrival moves it
	AttrGatherBy  = "debBy"  // connection whose texts are put together until then
	AttrUnsettled = "uns"    // string set: runs that ended and have not been settled
	AttrFell      = "fell"   // string set: runs that were steers of one that ended, and are not counted yet
	AttrFellBy    = "fellBy" // of the settler that counted last
	AttrSettles   = "setN"   // how often runs were taken out of it: orders settlers
	AttrMailSeq   = "mailSeq"
	AttrMailN     = "mailN"  // undelivered mailbox messages
	AttrCancel    = "can"    // cancel mark: short id of the active run
	AttrCancelWhy = "canWhy" // its stop reason
	AttrCutoff    = "cut"    // runs accepted up to here are stopped
	AttrCutWhy    = "cutWhy"
	AttrCutBy     = "cutBy" // short id of the run that came with an interrupt
	AttrStops     = "stops" // map: connection, or connection and run -> µs of the last stop frame (K1)
	AttrSubRev    = "sub"   // grows when someone subscribes while a run is active
	AttrUpdated   = "upd"   // ms of the last terminal or accept
	AttrInput     = "inp"   // ms: when a person last wrote, or the session was made or started over
	AttrCreated   = "crt"
	AttrLastRun   = "lrun" // short id of the last run that ended
	AttrLastEnd   = "lend" // how it ended: ok, error, aborted, timeout
	AttrBegan     = "bgn"  // ms: when the session was started over; absent: never
	AttrPrevID    = "psid" // transcript that a reset by policy ended
	AttrTokensIn  = "tin"  // tokens of all runs
	AttrTokensOut = "tout"
	AttrActivePK  = "activePk"
	AttrActiveSK  = "activeSk"
	AttrRecentPK  = "recentPk"
	AttrRecentSK  = "recentSk"
)

// MaxPending bounds the runs that wait in one session.
const MaxPending = 64

// Pending is a run that was accepted and has not begun.
type Pending struct {
	Seq  int64
	Lane string
	Run  string // short id, see run.Short
	// Mode is the queue mode of a message that came while others were at work; empty:
	// a run of its own right, which is not counted, dropped, merged or debounced.
	Mode string
	// Rev counts how often what the run has to say was changed while it waits, so that
	// whoever takes its place takes what it has read.
	Rev int64
}

// Value is the run's entry in AttrPending.
func (p Pending) Value() string {
	lane := p.Lane
	if p.Mode != "" || p.Rev > 0 {
		lane += "/" + p.Mode
	}
	if p.Rev > 0 {
		lane += "/" + strconv.FormatInt(p.Rev, 10)
	}
	return PendingValue(lane, p.Run)
}

// Meta is the hot item, decoded.
type Meta struct {
	Ref
	Token             int64
	Owner             string
	Lease             time.Time
	Debounce          time.Time
	GatherBy          string
	Nest              int64
	WriteID           string
	Head, Base        int64
	SessionID         string
	Active            string
	ActiveSeq         int64
	ActiveLane        string
	ActiveAt          int64
	Attempt, Stalled  int64
	Wake              time.Time
	Progress          Progress
	Seq               int64
	Pending           []Pending // by Seq
	Unsettled         []string
	Settles           int64
	Fell              []string
	FellBy            string
	MailSeq, MailN    int64
	Cancel, CancelWhy string
	Cutoff            int64
	CutWhy, CutBy     string
	Stops             map[string]int64
	SubRev            int64
	Updated, Created  int64
	LastInput         int64 // what the session is idle since; of items of older versions Updated
	LastRun, LastEnd  string
	Began             int64
	PrevID            string
	TokensIn          int64
	TokensOut         int64
	Busy              bool // has the key of the active index
}

// DecodeMeta reads a META item; of a nil item it is the zero Meta of ref.
func DecodeMeta(ref Ref, it *table.Item) Meta {
	m := Meta{Ref: ref}
	if it == nil {
		return m
	}
	a := it.Attrs
	m.Token, m.Owner, m.Nest, m.WriteID = a.Int(AttrToken), a.Str(AttrOwner), a.Int(AttrNest), a.Str(AttrWrite)
	m.Lease, m.Wake, m.Debounce = ms(a.Int(AttrLease)), ms(a.Int(AttrWake)), ms(a.Int(AttrDebounce))
	m.GatherBy = a.Str(AttrGatherBy)
	m.Head, m.Base, m.SessionID = a.Int(AttrHead), a.Int(AttrBase), a.Str(AttrSessionID)
	m.Active, m.ActiveSeq, m.ActiveLane, m.ActiveAt = a.Str(AttrActive), a.Int(AttrActiveSeq), a.Str(AttrActiveLn), a.Int(AttrActiveAt)
	m.Attempt, m.Stalled, m.Progress = a.Int(AttrAttempt), a.Int(AttrStalled), ParseProgress(a.Str(AttrProgress))
	m.Seq, m.MailSeq, m.MailN = a.Int(AttrSeq), a.Int(AttrMailSeq), a.Int(AttrMailN)
	m.Cancel, m.CancelWhy, m.Cutoff, m.CutWhy = a.Str(AttrCancel), a.Str(AttrCancelWhy), a.Int(AttrCutoff), a.Str(AttrCutWhy)
	m.CutBy = a.Str(AttrCutBy)
	m.SubRev, m.Updated, m.Created = a.Int(AttrSubRev), a.Int(AttrUpdated), a.Int(AttrCreated)
	m.LastRun, m.LastEnd, m.TokensIn, m.TokensOut = a.Str(AttrLastRun), a.Str(AttrLastEnd), a.Int(AttrTokensIn), a.Int(AttrTokensOut)
	m.LastInput = cmp.Or(a.Int(AttrInput), m.Updated)
	m.Began, m.PrevID = a.Int(AttrBegan), a.Str(AttrPrevID)
	m.Busy = a.Str(AttrActivePK) != ""
	m.Unsettled, m.Settles = a.StrSet(AttrUnsettled), a.Int(AttrSettles)
	m.Fell, m.FellBy = a.StrSet(AttrFell), a.Str(AttrFellBy)
	for k, v := range a.MapOf(AttrPending) {
		seq, err := strconv.ParseInt(k, 10, 64)
		s, _ := v.(string)
		lane, run, ok := strings.Cut(s, "|")
		if err != nil || !ok {
			continue
		}
		lane, mode, _ := strings.Cut(lane, "/")
		mode, count, _ := strings.Cut(mode, "/")
		rev, _ := strconv.ParseInt(count, 10, 64) // 0 where none is said
		m.Pending = append(m.Pending, Pending{seq, lane, run, mode, rev})
	}
	sort.Slice(m.Pending, func(i, j int) bool { return m.Pending[i].Seq < m.Pending[j].Seq })
	if stops := a.MapOf(AttrStops); len(stops) > 0 {
		m.Stops = make(map[string]int64, len(stops))
		for c, v := range stops {
			if n, ok := v.(int64); ok {
				m.Stops[c] = n
			}
		}
	}
	return m
}

// LoadMeta reads META; a session that was never used has the zero Meta.
func LoadMeta(ctx context.Context, t table.Store, ref Ref) (Meta, error) {
	it, err := t.Get(ctx, ref.MetaKey())
	if errors.Is(err, table.ErrNotFound) {
		return DecodeMeta(ref, nil), nil
	}
	if err != nil {
		return Meta{}, fmt.Errorf("read session: %w", err)
	}
	return DecodeMeta(ref, &it), nil
}

// Exists says whether the session was ever used.
func (m *Meta) Exists() bool { return m.Created != 0 }

// Owned says whether somebody holds the claim and its lease is not over, with
// slack for the clocks of two machines. It compares milliseconds, as the condition
// of a takeover does: between the two nothing is neither owned nor to be had.
func (m *Meta) Owned(now time.Time, slack time.Duration) bool {
	return m.Owner != "" && now.Add(-slack).UnixMilli() <= m.Lease.UnixMilli()
}

// Marked says whether the active run is to end: by name or by the cutoff.
func (m *Meta) Marked() bool {
	return m.Active != "" && (m.Cancel == m.Active || m.ActiveSeq <= m.Cutoff)
}

// Asleep says whether the active run waits for its wake time.
func (m *Meta) Asleep(now time.Time) bool {
	return m.Active != "" && m.Wake.After(now) && !m.Marked()
}

// Cut lists the pending runs that a session-wide stop ended: they count as
// unsettled and are never started.
func (m *Meta) Cut() []Pending {
	var out []Pending
	for _, p := range m.Pending {
		if p.Seq <= m.Cutoff {
			out = append(out, p)
		}
	}
	return out
}

// Position is the place of a pending run in the queue, from 1; 0: it is not in it.
func (m *Meta) Position(short string) int {
	n := 0
	for _, p := range m.Pending {
		if p.Seq <= m.Cutoff {
			continue
		}
		if n++; p.Run == short {
			return n
		}
	}
	return 0
}

// Lowest is the pending run to start next: the lowest accept sequence above the
// cutoff.
func (m *Meta) Lowest() (Pending, bool) {
	for _, p := range m.Pending {
		if p.Seq > m.Cutoff {
			return p, true
		}
	}
	return Pending{}, false
}

// WorkLeft says whether a wake-up has anything to do here (L5), runs in except
// not counted as unsettled.
func (m *Meta) WorkLeft(now time.Time, slack time.Duration, except ...string) bool {
	if len(m.Cut()) > 0 {
		return true
	}
	for _, u := range m.Unsettled {
		if !slices.Contains(except, u) {
			return true
		}
	}
	if m.Active == "" {
		return len(m.Pending) > 0
	}
	return !m.Owned(now, slack) && !m.Asleep(now)
}

// PendingMember is the member of AttrPending for an accept sequence.
func PendingMember(seq int64) string { return fmt.Sprintf("%010d", seq) }

// PendingValue is the value of that member for a run without a queue mode.
func PendingValue(lane, run string) string { return lane + "|" + run }

// ActiveShards is the number of partitions of the active index.
const ActiveShards = 16

// ActivePK is the partition of the active index that the session is in.
func (r Ref) ActivePK() string {
	h := r.Hash()
	n, _ := strconv.ParseUint(h[:4], 16, 16)
	return ActiveShard(int(n % ActiveShards))
}

// ActiveShard names one partition of the active index.
func ActiveShard(n int) string { return fmt.Sprintf("A#%02d", n) }

// RecentPK is the partition of the recent index of a tenant.
func RecentPK(tenant string) string { return "R#" + tenant }

// RecentSK orders sessions by their last terminal.
func RecentSK(at time.Time, key string) string {
	return fmt.Sprintf("%015d#%s", at.UnixMilli(), key)
}

func ms(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n)
}
