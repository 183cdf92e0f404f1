// Package storm is what a busy afternoon looks like: many clients write to few
// sessions at once, in every queue mode, while the model fails by a plan. Afterwards
// each message must be accounted for.
//
// Guarantees: the plan follows from a seed, which is printed; what a client saw is
// judged from its own events alone, as a person at its screen would.
package storm
