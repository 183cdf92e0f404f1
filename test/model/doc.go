// Package model searches one session exhaustively: every order in which gateways,
// runners, the notifier, the watchdog and their deaths can take their steps.
//
// Guarantees: Search visits each state that a Scenario can reach, and stops on a
// shortest way to the first thing that is broken. What is broken at a transition is
// found there: a superseded holder that writes, a run that ends twice, an order that
// is not the accept order, a side effect that happens twice, two answers to one
// waiter, and so on (see Check). What is broken over the whole graph is found behind
// it: a state from which nothing leads to a settled one without further faults, a
// state without any fault out of which only the watchdog leads, and a circle of steps
// that processes make by themselves. Two searches of the same scenario visit the same
// states in the same order.
//
// Modelled: a session with up to three runs (of their own right, steers, interrupts)
// in two lanes; for each call a gateway that reads, writes, sends and replies, and a
// client that asks again; two runner slots, where a dead runner's slot is a fresh
// invocation; the abort of one run, the session-wide stop with its mark for earlier
// frames, a command under the claim (inject, reset, a nested hold), agent.wait with its
// timer, row and second reading, the caller of a run who waits for its end, the
// notifier, a subscriber, the watchdog; a step with two tool calls and their ledger
// rows, checkpoints, sleep, a run that kills every runner and one whose model call is
// too long. A step is one call of a store, a queue or a tool. Faults: death and, for
// runners, freezing; answers lost of writes that were applied; sends that fail;
// messages delivered twice, or only after their receiver's death, or never again;
// conflicts.
//
// Not modelled: event streams, connections, the content and size of rows, overflow,
// collect mode and debounce of the queue, throttling, more than one step with tools,
// caps of lanes, several sessions, time as a number. Whoever is neither dead nor
// frozen renews and finishes in time. A lease runs out, a message becomes visible again
// and the watchdog comes where nobody alive has anything to do; a scenario with Eager
// lets them come at any time. Two equal messages of one kind are kept apart, more are
// not. Reading and writing are one step where the write holds on all that was read.
//
// How it is kept in step: each transition names the function that makes it, and a test
// looks for these functions in the code. Whoever changes a condition of one of them
// changes it here. Variants are the rules with one clause taken away; a test shows
// that each is caught, by which check, and how long the shortest trace is. The test's
// table is testdata/variants.txt.
package model
