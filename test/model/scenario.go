package model

// Kind is what a run's message asks for.
type Kind uint8

// Kinds of messages.
const (
	None      Kind = iota
	Normal         // a run of its own right
	Steer          // into the active run, else a run
	Interrupt      // ends everything before it
)

// Run is one call and what becomes of it.
type Run struct {
	Kind    Kind
	Lane    uint8 // 0 or 1
	Tools   bool  // a step with two calls that must not happen twice
	Origin  bool  // its caller wants the end told
	Poison  bool  // it kills every runner that asks the model
	Long    bool  // its model call takes longer than an invocation may
	Early   bool  // its frame came before that of the session-wide stop
	Repeats uint8 // how often its client may ask again with the same key
}

// Commands.
const (
	Inject = "inject" // one row
	Reset  = "reset"  // stops the session's work first; a run that has begun makes it busy
	Nested = "nested" // takes the claim once more inside
)

// Scenario is what may happen in one search.
type Scenario struct {
	Name      string
	Runs      [maxRuns]Run
	Faults    [nFaults]uint8
	Conflicts uint8
	Abort     uint8  // the run that chat.abort names, index+1; 0: nobody aborts
	Stop      bool   // a session-wide stop comes
	Command   string // "": none
	Wait      uint8  // the run that agent.wait names, index+1; 0: nobody waits
	Subscribe bool   // somebody subscribes while a run is active

	SleepForever bool // the sleeper's time never comes
	NoRedelivery bool // a dead receiver's message blocks its group for ever
	// Eager lets the watchdog come, and leases and messages run out, at any time. Else
	// they do where nobody who lives has anything to do: what takes seconds comes after
	// what takes milliseconds.
	Eager bool

	Size Size
}

// Size is how long the search of a scenario takes.
type Size uint8

// Sizes of searches.
const (
	Tiny  Size = iota // with every test run
	Small             // in CI
	Full              // when the rules change
)

func (sc *Scenario) uses(lane uint8) bool {
	for r := range sc.Runs {
		if sc.Runs[r].Kind != None && sc.Runs[r].Lane == lane {
			return true
		}
	}
	return false
}

func faultsOf(n map[int]uint8) (f [nFaults]uint8) {
	for k, v := range n {
		f[k] = v
	}
	return f
}

type counts = map[int]uint8

// Scenarios are the searches under the rules as they are. Together they let each
// fault meet each part; each stays small enough to be searched whole.
func Scenarios() []Scenario {
	plain := Run{Kind: Normal}
	tools := Run{Kind: Normal, Tools: true}
	asked := Run{Kind: Normal, Origin: true}
	steer := Run{Kind: Steer}
	return []Scenario{
		{Name: "plain", Runs: [3]Run{{Kind: Normal, Origin: true, Tools: true}}, Faults: faultsOf(counts{shortTime: 1})},
		{Name: "two", Runs: [3]Run{plain, plain}},
		{Name: "twolanes", Runs: [3]Run{plain, {Kind: Normal, Lane: 1}}},
		{Name: "steerone", Runs: [3]Run{plain, {Kind: Steer, Origin: true}}, Faults: faultsOf(counts{crashes: 1})},
		{Name: "abortone", Runs: [3]Run{plain, asked}, Abort: 2, Faults: faultsOf(counts{shortTime: 1}), Conflicts: 1},
		{Name: "abortasleep", Runs: [3]Run{plain, asked}, Abort: 2, Faults: faultsOf(counts{sleeps: 1})},
		{Name: "injectone", Runs: [3]Run{plain, plain}, Command: Inject},
		{Name: "one", Runs: [3]Run{tools}, Faults: faultsOf(counts{crashes: 1, freezes: 1, shortTime: 1}), Eager: true, Size: Full},
		{Name: "order", Runs: [3]Run{plain, plain, plain}, Faults: faultsOf(counts{crashes: 1})},
		{Name: "lost", Runs: [3]Run{{Kind: Normal, Tools: true, Repeats: 1}, plain}, Faults: faultsOf(counts{deaths: 1, crashes: 1, lostAnswer: 1}), Size: Small},
		{Name: "send", Runs: [3]Run{{Kind: Normal, Repeats: 1}, plain}, Faults: faultsOf(counts{deaths: 1, lostSend: 1, storeFails: 1, crashes: 1}), Size: Full},
		{Name: "twice", Runs: [3]Run{plain, plain}, Faults: faultsOf(counts{freezes: 1, duplicates: 1}), Eager: true, Size: Small},
		{Name: "blocked", Runs: [3]Run{plain, plain}, Faults: faultsOf(counts{crashes: 2, shortTime: 1}), NoRedelivery: true},
		{Name: "deaths", Runs: [3]Run{tools}, Faults: faultsOf(counts{crashes: 4})},
		{Name: "poison", Runs: [3]Run{{Kind: Normal, Poison: true, Origin: true}, plain}},
		{Name: "long", Runs: [3]Run{{Kind: Normal, Long: true, Origin: true}, plain}, Faults: faultsOf(counts{crashes: 1})},
		{Name: "steer", Runs: [3]Run{plain, {Kind: Steer, Origin: true}, plain}, Faults: faultsOf(counts{crashes: 1}), Size: Full},
		{Name: "steerlost", Runs: [3]Run{plain, steer}, Faults: faultsOf(counts{crashes: 1, freezes: 1, lostAnswer: 1}), Size: Full},
		{Name: "steerabort", Runs: [3]Run{plain, steer, plain}, Abort: 1, Size: Full},
		{Name: "steerabortdeath", Runs: [3]Run{plain, {Kind: Steer, Origin: true}}, Abort: 1, Faults: faultsOf(counts{crashes: 1}), Size: Full},
		{Name: "withdraw", Runs: [3]Run{plain, {Kind: Steer, Origin: true}}, Abort: 2, Faults: faultsOf(counts{crashes: 1, lostAnswer: 1}), Size: Full},
		{Name: "abort", Runs: [3]Run{plain, asked}, Abort: 2, Faults: faultsOf(counts{deaths: 1, crashes: 1, lostAnswer: 1, shortTime: 1}), Conflicts: 1, Size: Full},
		{Name: "aborttools", Runs: [3]Run{tools, plain}, Abort: 1, Faults: faultsOf(counts{crashes: 1, shortTime: 1}), Size: Full},
		{Name: "sleep", Runs: [3]Run{plain, plain}, Abort: 1, Faults: faultsOf(counts{sleeps: 1, crashes: 1}), SleepForever: true, Size: Small},
		{Name: "alarm", Runs: [3]Run{plain, {Kind: Interrupt}}, Faults: faultsOf(counts{sleeps: 1, crashes: 1, lostAnswer: 1}), Size: Small},
		{Name: "interrupt", Runs: [3]Run{plain, asked, {Kind: Interrupt}}, Faults: faultsOf(counts{crashes: 1}), Size: Full},
		{Name: "intsteer", Runs: [3]Run{plain, {Kind: Interrupt}, steer}, Faults: faultsOf(counts{crashes: 1}), Size: Full},
		{Name: "stop", Runs: [3]Run{{Kind: Normal, Early: true, Repeats: 1}, asked}, Stop: true, Faults: faultsOf(counts{deaths: 1, crashes: 1}), Size: Full},
		{Name: "stopsleep", Runs: [3]Run{plain, plain}, Stop: true, Faults: faultsOf(counts{sleeps: 1}), SleepForever: true},
		{Name: "stopsteer", Runs: [3]Run{plain, steer}, Stop: true, Abort: 1, Size: Small},
		{Name: "inject", Runs: [3]Run{tools, plain}, Command: Inject, Faults: faultsOf(counts{deaths: 1, crashes: 1, shortTime: 1}), Size: Full},
		{Name: "reset", Runs: [3]Run{plain, plain}, Command: Reset, Stop: true, Faults: faultsOf(counts{deaths: 1, crashes: 1, shortTime: 1}), Size: Full},
		{Name: "nested", Runs: [3]Run{plain}, Command: Nested, Faults: faultsOf(counts{deaths: 1, crashes: 1, freezes: 1})},
		{Name: "wait", Runs: [3]Run{asked}, Wait: 1, Faults: faultsOf(counts{deaths: 1, crashes: 1})},
		{Name: "waitfreeze", Runs: [3]Run{asked}, Wait: 1, Faults: faultsOf(counts{crashes: 1, freezes: 1}), Size: Small},
		{Name: "waitsteer", Runs: [3]Run{plain, {Kind: Steer, Origin: true}}, Wait: 2, Faults: faultsOf(counts{deaths: 1, crashes: 1}), Size: Full},
		{Name: "lanes", Runs: [3]Run{plain, {Kind: Normal, Lane: 1}, plain}, Faults: faultsOf(counts{duplicates: 1}), Size: Full},
		{Name: "lanes2", Runs: [3]Run{plain, {Kind: Normal, Lane: 1}}, Faults: faultsOf(counts{crashes: 1, shortTime: 1}), Size: Full},
		{Name: "lanesfreeze", Runs: [3]Run{plain, {Kind: Normal, Lane: 1}}, Faults: faultsOf(counts{freezes: 1, shortTime: 1}), Size: Full},
		{Name: "settle", Runs: [3]Run{asked, asked}, Faults: faultsOf(counts{crashes: 1, freezes: 1}), Size: Small},
		{Name: "subscribe", Runs: [3]Run{plain, steer}, Subscribe: true, Abort: 1, Faults: faultsOf(counts{crashes: 1}), Size: Small},
	}
}

// Find gives a scenario by its name.
func Find(name string) (Scenario, bool) {
	for _, sc := range Scenarios() {
		if sc.Name == name {
			return sc, true
		}
	}
	return Scenario{}, false
}
