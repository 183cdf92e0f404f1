package profile

import (
	"cmp"
	"slices"
	"time"

	"laneway/shared/model"
)

// Pin is the credential that a session keeps to.
type Pin struct {
	ID   string
	User bool // chosen by a person: it is passed by while it is cooled, and then preferred again
}

// typeRank prefers what a person signed in with to what was pasted.
var typeRank = map[string]int{"oauth": 0, "token": 1, "api-key": 2}

// Order is the order in which credentials are tried for a model. Those without a key are
// left out. A pin comes first while it is not cooled; then an order that was configured,
// or the kind of credential and the one that was used longest ago; those that are
// cooled come last, the one that is free first before the others.
func Order(list []model.Credential, ordered bool, usage map[string]Usage, modelID string, pin Pin, now time.Time) []string {
	type entry struct {
		model.Credential

		at     int
		used   int64
		window Window
	}
	var all []entry
	for i, c := range list {
		if !c.Present {
			continue
		}
		u := usage[c.ID]
		all = append(all, entry{c, i, u.LastUsed, u.For(modelID, now)})
	}
	cooled := func(e entry) int {
		if e.window.Active(now) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b entry) int {
		if c := cmp.Compare(cooled(a), cooled(b)); c != 0 {
			return c
		}
		if cooled(a) == 1 {
			return a.window.Until.Compare(b.window.Until)
		}
		if p := cmp.Compare(pinned(b.ID, pin), pinned(a.ID, pin)); p != 0 {
			return p
		}
		if ordered {
			return cmp.Compare(a.at, b.at)
		}
		return cmp.Or(cmp.Compare(typeRank[a.Type], typeRank[b.Type]), cmp.Compare(a.used, b.used), cmp.Compare(a.at, b.at))
	})
	out := make([]string, len(all))
	for i, e := range all {
		out[i] = e.ID
	}
	return out
}

func pinned(id string, pin Pin) int {
	if id == pin.ID {
		return 1
	}
	return 0
}
