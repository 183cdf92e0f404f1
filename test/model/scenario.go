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

	SleepForever  bool // the sleeper's time never comes
	NoRedelivery  bool // a dead receiver's message blocks its group for ever
	EagerWatchdog bool // the watchdog may come at any time, not only when nothing else goes on

	// Small says that the search is one of the quick ones.
	Small bool
}

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
		{Name: "one", Runs: [3]Run{tools}, Faults: faultsOf(counts{crashes: 1, freezes: 1, shortTime: 1}), EagerWatchdog: true, Small: true},
		{Name: "order", Runs: [3]Run{plain, plain, plain}, Faults: faultsOf(counts{crashes: 1}), Small: true},
		{Name: "lost", Runs: [3]Run{{Kind: Normal, Tools: true, Repeats: 1}, plain}, Faults: faultsOf(counts{crashes: 1, lostAnswer: 1}), Small: true},
		{Name: "send", Runs: [3]Run{{Kind: Normal, Repeats: 1}, plain}, Faults: faultsOf(counts{lostSend: 1, storeFails: 1, crashes: 1}), Small: true},
		{Name: "twice", Runs: [3]Run{plain, plain}, Faults: faultsOf(counts{freezes: 1, duplicates: 1}), EagerWatchdog: true},
		{Name: "blocked", Runs: [3]Run{plain, plain}, Faults: faultsOf(counts{crashes: 2, shortTime: 1}), NoRedelivery: true, Small: true},
		{Name: "deaths", Runs: [3]Run{tools}, Faults: faultsOf(counts{crashes: 4}), Small: true},
		{Name: "poison", Runs: [3]Run{{Kind: Normal, Poison: true, Origin: true}, plain}, Small: true},
		{Name: "long", Runs: [3]Run{{Kind: Normal, Long: true, Origin: true}, plain}, Faults: faultsOf(counts{crashes: 1}), Small: true},
		{Name: "steer", Runs: [3]Run{plain, {Kind: Steer, Origin: true}, plain}, Faults: faultsOf(counts{crashes: 1}), Small: true},
		{Name: "steerlost", Runs: [3]Run{plain, steer}, Faults: faultsOf(counts{crashes: 1, freezes: 1, lostAnswer: 1})},
		{Name: "steerabort", Runs: [3]Run{plain, {Kind: Steer, Origin: true}, plain}, Abort: 1, Faults: faultsOf(counts{crashes: 1}), Small: true},
		{Name: "withdraw", Runs: [3]Run{plain, {Kind: Steer, Origin: true}}, Abort: 2, Faults: faultsOf(counts{crashes: 1, lostAnswer: 1}), Small: true},
		{Name: "abort", Runs: [3]Run{plain, asked}, Abort: 2, Faults: faultsOf(counts{crashes: 1, lostAnswer: 1, shortTime: 1}), Conflicts: 1, Small: true},
		{Name: "aborttools", Runs: [3]Run{tools, plain}, Abort: 1, Faults: faultsOf(counts{crashes: 1, shortTime: 1}), Small: true},
		{Name: "sleep", Runs: [3]Run{plain, plain}, Abort: 1, Faults: faultsOf(counts{sleeps: 1, crashes: 1}), SleepForever: true, Small: true},
		{Name: "alarm", Runs: [3]Run{plain, {Kind: Interrupt}}, Faults: faultsOf(counts{sleeps: 1, crashes: 1, lostAnswer: 1}), Small: true},
		{Name: "interrupt", Runs: [3]Run{plain, asked, {Kind: Interrupt}}, Faults: faultsOf(counts{crashes: 1})},
		{Name: "intsteer", Runs: [3]Run{plain, {Kind: Interrupt}, steer}, Faults: faultsOf(counts{crashes: 1}), Small: true},
		{Name: "stop", Runs: [3]Run{{Kind: Normal, Early: true, Repeats: 1}, asked}, Stop: true, Faults: faultsOf(counts{crashes: 1}), Small: true},
		{Name: "stopsleep", Runs: [3]Run{plain, plain}, Stop: true, Faults: faultsOf(counts{sleeps: 1}), SleepForever: true, Small: true},
		{Name: "stopsteer", Runs: [3]Run{plain, steer}, Stop: true, Abort: 1, Small: true},
		{Name: "inject", Runs: [3]Run{tools, plain}, Command: Inject, Faults: faultsOf(counts{crashes: 1, shortTime: 1}), Small: true},
		{Name: "reset", Runs: [3]Run{plain, plain}, Command: Reset, Stop: true, Faults: faultsOf(counts{crashes: 1, shortTime: 1}), Small: true},
		{Name: "nested", Runs: [3]Run{plain}, Command: Nested, Faults: faultsOf(counts{crashes: 1}), Small: true},
		{Name: "wait", Runs: [3]Run{asked}, Wait: 1, Faults: faultsOf(counts{crashes: 1}), Small: true},
		{Name: "waitfreeze", Runs: [3]Run{asked}, Wait: 1, Faults: faultsOf(counts{crashes: 1, freezes: 1})},
		{Name: "waitsteer", Runs: [3]Run{plain, {Kind: Steer, Origin: true}}, Wait: 2, Faults: faultsOf(counts{crashes: 1})},
		{Name: "lanes", Runs: [3]Run{plain, {Kind: Normal, Lane: 1}, plain}, Faults: faultsOf(counts{duplicates: 1}), Small: true},
		{Name: "lanes2", Runs: [3]Run{plain, {Kind: Normal, Lane: 1}}, Faults: faultsOf(counts{crashes: 1, freezes: 1, shortTime: 1})},
		{Name: "settle", Runs: [3]Run{asked, asked}, Faults: faultsOf(counts{crashes: 1, freezes: 1})},
		{Name: "subscribe", Runs: [3]Run{plain, steer}, Subscribe: true, Abort: 1, Faults: faultsOf(counts{crashes: 1}), Small: true},
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
