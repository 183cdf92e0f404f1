package model

// Candidate is a model that may answer a run, with the credentials that open it.
type Candidate struct {
	Selected

	// Profiles are the credentials that there are for it, in the order of the
	// configuration; empty: Selected.Provider needs none, or has its one.
	Profiles []Credential
	// Ordered says that the configuration gives their order, which use does not change.
	Ordered bool
	// Open makes the provider that uses one of Profiles; nil where there are none.
	Open func(profile string) (Provider, error)
	// Missing says that no credential is there; such a candidate is passed by.
	Missing bool
}

// Ref is the candidate's name: provider/id.
func (c *Candidate) Ref() string { return c.Name + "/" + c.Model }

// Credential is one way to be let in by a provider.
type Credential struct {
	ID       string
	Provider string
	Type     string // oauth, token, api-key
	Present  bool   // what holds it has something in it
}
