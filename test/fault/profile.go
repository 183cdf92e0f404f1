package fault

import (
	"slices"
	"time"
)

// Profile is what a scenario is made of. Numbers of faults are the most that there may
// be; how many there are is the seed's.
type Profile struct {
	Name     string
	Sessions int
	Runners  int
	Messages int // calls that begin a run
	// Modes are the ways in which messages come: agent (a run of its own right), one of
	// the queue modes, text (chat.send that says nothing of the queue), or cron (agent, in
	// another lane).
	Modes []string
	Plans []string // of turns, see brain.go
	Waits int      // agent.wait calls
	Stops int      // chat.abort calls, of a run or a session
	// StopAt are the writes at which stops come, half of them; nil: any.
	StopAt []kind
	// Late are kinds of writes of which a seed chooses one: nearly always everything else
	// that can happen comes before it, and half the messages come while it waits.
	Late []kind
	Slow []kind
	// Others are commands that take the claim, sessions that are started over, repeats of a
	// key, conflicts.
	Commands, Resets, Repeats, Conflicts int
	// Inbound is how long texts wait for more of their sender; 0: not at all.
	Inbound time.Duration

	Kills, Freezes, Stores, Queues, Posts int
	// Visibility is how long a failed message, or one of a dead receiver, stays hidden;
	// less than 0: for ever.
	Visibility []time.Duration
	Receives   int           // after which a wake-up that fails is a dead letter; 0: 5
	Invocation time.Duration // of a runner; 0: no limit
	Skew       time.Duration // of clocks
	// Eager lets time pass only where nothing else can happen. Then nobody but the
	// watchdog may be late, and without faults it must never be needed.
	Eager  bool
	Spread time.Duration // over which the calls come
}

func (p *Profile) stepNeed() time.Duration {
	if p.Invocation > 0 {
		return p.Invocation / 2
	}
	return 30 * time.Second
}

const never = -time.Second

var (
	soon   = []time.Duration{2 * time.Second, 30 * time.Second}
	seldom = []time.Duration{2 * time.Second, 30 * time.Second, 10 * time.Minute, never}

	modesAll   = []string{"agent", "agent", "steer", "followup", "collect", "interrupt", "cron"}
	modesTexts = []string{"text", "text", "text", "text", "agent", "cron", "steer", "followup", "collect", "interrupt"}
	plansAll   = []string{"", "U", "R", "I", "B", "UU", "UIR", "Q", "E", "S", "L", "UL", "BU", "F", "UE"}
)

// profiles are chosen by the seed, each as often as the others.
var profiles = []Profile{
	{Name: "calm", Sessions: 2, Runners: 3, Messages: 6, Modes: modesAll, Plans: plansAll, Waits: 3, Stops: 2, Commands: 2, Repeats: 2, Conflicts: 1, Eager: true, Visibility: soon, Spread: 12 * time.Second},
	{Name: "calm-stop", Sessions: 1, Runners: 3, Messages: 6, Modes: modesAll, Plans: []string{"", "U", "S", "L", "Z", "UZ", "SU"}, Waits: 2, Stops: 6, Eager: true, Visibility: soon, Spread: 10 * time.Second},
	{Name: "crash", Sessions: 1, Runners: 3, Messages: 4, Modes: modesAll, Plans: plansAll, Waits: 2, Stops: 1, Repeats: 1, Kills: 4, Visibility: seldom, Spread: 10 * time.Second},
	{Name: "tools", Sessions: 1, Runners: 2, Messages: 3, Modes: []string{"agent", "steer", "followup"}, Plans: []string{"U", "B", "UU", "Q", "BUI", "L", "UL"}, Waits: 1, Kills: 3, Freezes: 1, Visibility: seldom, Spread: 6 * time.Second},
	{Name: "freeze", Sessions: 1, Runners: 3, Messages: 4, Modes: modesAll, Plans: plansAll, Waits: 2, Stops: 1, Commands: 1, Freezes: 3, Kills: 1, Visibility: seldom, Skew: 2 * time.Second, Spread: 10 * time.Second},
	{Name: "store", Sessions: 2, Runners: 3, Messages: 5, Modes: modesAll, Plans: plansAll, Waits: 2, Stops: 2, Commands: 1, Repeats: 1, Stores: 14, Visibility: soon, Spread: 8 * time.Second},
	{Name: "queue", Sessions: 2, Runners: 3, Messages: 5, Modes: modesAll, Plans: plansAll, Waits: 3, Stops: 1, Repeats: 1, Queues: 10, Kills: 1, Visibility: seldom, Spread: 8 * time.Second},
	{Name: "posts", Sessions: 1, Runners: 2, Messages: 4, Modes: modesAll, Plans: []string{"", "U", "S", "SS", "B"}, Waits: 3, Posts: 12, Kills: 1, Visibility: soon, Spread: 8 * time.Second},
	{Name: "steer", Sessions: 1, Runners: 3, Messages: 5, Modes: []string{"agent", "steer", "steer", "steer", "interrupt"}, Plans: []string{"", "U", "B", "S", "Q", "F", "UU"}, Waits: 2, Stops: 2, Kills: 2, Freezes: 1, Stores: 4, Visibility: seldom, Spread: 5 * time.Second},
	{Name: "stop", Sessions: 1, Runners: 3, Messages: 5, Modes: modesAll, Plans: []string{"", "U", "S", "L", "Z", "B"}, Waits: 2, Stops: 4, Commands: 1, Kills: 2, Stores: 3, Queues: 2, Visibility: seldom, Spread: 8 * time.Second},
	{Name: "waits", Sessions: 1, Runners: 2, Messages: 3, Modes: []string{"agent", "followup", "steer"}, Plans: []string{"", "U", "S", "F"}, Waits: 6, Repeats: 2, Kills: 3, Freezes: 1, Stores: 3, Queues: 3, Posts: 3, Visibility: soon, Spread: 12 * time.Second},
	{Name: "lanes", Sessions: 2, Runners: 2, Messages: 6, Modes: []string{"agent", "cron", "cron", "followup"}, Plans: []string{"", "U", "R", "E"}, Stops: 1, Kills: 2, Queues: 4, Visibility: seldom, Spread: 6 * time.Second},
	{Name: "short", Sessions: 1, Runners: 3, Messages: 3, Modes: []string{"agent", "steer", "followup"}, Plans: []string{"U", "UUU", "BU", "LS", "SU", "SB", "EU", "S"}, Waits: 1, Stops: 1, Kills: 2, Invocation: 12 * time.Second, Visibility: soon, Spread: 10 * time.Second},
	{Name: "sleep", Sessions: 1, Runners: 2, Messages: 3, Modes: []string{"agent", "followup", "steer", "interrupt"}, Plans: []string{"Z", "UZ", "U"}, Stops: 2, Waits: 1, Kills: 2, Queues: 3, Visibility: seldom, Spread: 20 * time.Second},
	late("late", kAccept, kSteer, kClaim, kTerminal, kRelease, kSettled, kEndQueued, kCancel, kCutoff, kWaiter, kTake, kOrigin),
	{Name: "calm-sleep", Sessions: 1, Runners: 2, Messages: 2, Modes: []string{"agent", "agent", "interrupt"}, Plans: []string{"Z", "UZ"}, Stops: 5, StopAt: []kind{kRelease}, Eager: true, Visibility: soon, Spread: 6 * time.Second},
	{Name: "poison", Sessions: 1, Runners: 2, Messages: 3, Modes: []string{"agent", "followup"}, Plans: []string{"K", "UK", "U", ""}, Waits: 1, Visibility: soon, Spread: 5 * time.Second},
	{Name: "all", Sessions: 2, Runners: 4, Messages: 7, Modes: modesAll, Plans: append([]string{"Z", "K"}, plansAll...), Waits: 3, Stops: 2, Commands: 1, Repeats: 2, Conflicts: 1, Kills: 3, Freezes: 2, Stores: 6, Queues: 4, Posts: 4, Visibility: seldom, Skew: time.Second, Spread: 15 * time.Second},
	{Name: "texts", Sessions: 1, Runners: 3, Messages: 8, Modes: modesTexts, Plans: []string{"", "", "", "U", "S", "Q", "F", "X"}, Waits: 3, Stops: 2, Commands: 1, Resets: 1, Repeats: 3, Conflicts: 1, Inbound: 2 * time.Second, Kills: 3, Freezes: 1, Stores: 5, Queues: 5, Posts: 1, Visibility: seldom, Skew: 300 * time.Millisecond, Spread: 12 * time.Second},
	{Name: "calm-texts", Sessions: 2, Runners: 3, Messages: 8, Modes: modesTexts, Plans: []string{"", "", "U", "S"}, Waits: 3, Stops: 3, Commands: 1, Repeats: 2, Conflicts: 1, Inbound: 25 * time.Second, Eager: true, Visibility: soon, Spread: 30 * time.Second},
}

// aimed are profiles for what shows seldom elsewhere; no seed chooses them.
var aimed = []Profile{
	lateWith("late-release", Profile{Messages: 3, Plans: []string{""}, Commands: 3}, kRelease),
	lateWith("late-cancel", Profile{Messages: 3, Plans: []string{"", "U"}, Stops: 4}, kCancel),
	lateWith("late-steer", Profile{Messages: 4, Plans: []string{"", "U"}, Modes: []string{"agent", "steer", "steer", "interrupt"}, Stops: 3}, kSteer),
	lateWith("late-accept", Profile{Messages: 4, Plans: []string{"", "S"}, Stops: 4}, kAccept),
	lateWith("late-texts", Profile{Messages: 7, Plans: []string{""}, Modes: []string{"text", "text", "text", "text", "agent"}, Stops: 5, StopAt: []kind{kCommit}, Repeats: 2, Inbound: 2 * time.Second}, kCommit),
	lateWith("late-end", Profile{Messages: 5, Plans: []string{"", "U"}, Stops: 5}, kEndQueued),
}

// late is a profile without faults in which writes of a kind are overtaken.
func late(name string, kinds ...kind) Profile {
	return lateWith(name, Profile{Messages: 6, Plans: []string{"", "U", "S", "B"}, Waits: 4, Stops: 4, Commands: 3}, kinds...)
}

func lateWith(name string, p Profile, kinds ...kind) Profile {
	p.Name, p.Late, p.Eager = name, kinds, true
	p.Sessions, p.Runners, p.Visibility, p.Spread = 1, 3, soon, 6*time.Second
	if p.Modes == nil {
		p.Modes = modesAll
	}
	return p
}

// ProfileNames lists the profiles.
func ProfileNames() []string {
	var out []string
	for _, p := range slices.Concat(profiles, aimed) {
		out = append(out, p.Name)
	}
	return out
}

func profileOf(c Config) Profile {
	for _, p := range slices.Concat(profiles, aimed) {
		if p.Name == c.Profile {
			return p
		}
	}
	return profiles[c.Seed%uint64(len(profiles))]
}

// budget is what may still go wrong.
type budget struct{ kills, freezes, stores, queues, posts int }

func (b budget) spent() bool { return b == budget{} }
