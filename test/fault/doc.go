// Package fault is the fault kit: a simulation of the durable core that goes wrong on
// purpose, and checks after every step that nobody could tell.
//
// What is simulated is the product's own code: gateways, runners, a watchdog and a
// notifier with all their services, over tables in memory. What is the kit's own is
// everything around it: the clock, the queues, the connections, the model, the tools,
// and the order in which anything happens. A process stops at every call of a port; a
// scheduler lets one of them go on, lets time pass, delivers a message, or makes
// something go wrong: a process dies, freezes and thaws, a write is done and answered
// with an error, a message comes twice, late or never.
//
// Guarantees: a seed decides the scenario, the faults and the order of all calls.
// Within one step several goroutines of one process may run side by side, and a select
// with two ready cases is Go's to choose; where the product's own code leaves such a
// choice, two runs of a seed may differ. TestReplay measures that. A violation names
// the rule that it breaks; what is printed of a failing seed has its timeline and the
// command that runs it again.
package fault
