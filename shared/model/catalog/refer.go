package catalog

import (
	"slices"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// profiles checks what profiles and orders refer to.
func (r *reader) profiles(c *Catalog) {
	for _, p := range c.Profiles {
		path := "auth.profiles." + p.ID
		switch q, ok := c.Provider(p.Provider); {
		case p.Provider == "":
			r.addf(path+".provider", "is missing")
		case !ok && !builtIn(p.Provider):
			r.addf(path+".provider", "is not among the providers of this file")
		case ok && q.API == Bedrock:
			r.addf(path+".provider", "Bedrock is opened by AWS credentials, not by profiles")
		case p.Key.Zero():
			r.addf(path+".key", "is missing")
		}
	}
	for provider, ids := range c.Order {
		for i, id := range ids {
			k := slices.IndexFunc(c.Profiles, func(p Profile) bool { return p.ID == id })
			if path := at("auth.order."+provider, i); k < 0 {
				r.addf(path, "is not a profile of this file")
			} else if c.Profiles[k].Provider != provider {
				r.addf(path, "is a profile of another provider")
			}
		}
	}
}

// aliasesOf checks that no alias is the id of another model: /model would find one of
// the two, and nobody could tell which.
func (r *reader) aliasesOf(c *Catalog) {
	ids := map[string][]string{} // models by id; aliases are found in any case
	for _, p := range c.Providers {
		for _, m := range p.Models {
			low := strings.ToLower(m.ID)
			ids[low] = append(ids[low], Ref(p.ID, m.ID))
		}
	}
	for _, p := range c.Providers {
		for i, m := range p.Models {
			for _, other := range ids[strings.ToLower(m.Alias)] {
				if m.Alias != "" && other != Ref(p.ID, m.ID) {
					r.addf(join(at("providers."+p.ID+".models", i), "alias"), "is the id of another model, %s", other)
					break
				}
			}
		}
	}
}

// builtIn are providers that the environment can configure.
func builtIn(id string) bool { return id == "openai" || id == "anthropic" }

// Refer checks that the models which defaults and agents name can be found among the
// providers that there are: those of the file, and more that the environment adds.
func (c *Catalog) Refer() error {
	r := &reader{}
	r.refs(c, "defaults", c.Defaults.Choice)
	for _, id := range sorted(c.Agents) {
		r.refs(c, "agents."+id, c.Agents[id])
	}
	return r.err()
}

func (r *reader) refs(c *Catalog, path string, choice Choice) {
	check := func(path, ref string) {
		if _, _, ok := c.Find(ref); !ok {
			r.addf(path, "names no model that is configured; known providers are %s", strings.Join(c.providerIDs(), ", "))
		}
	}
	if choice.Primary != "" {
		check(path+".model.primary", choice.Primary)
	}
	for i, ref := range choice.Fallbacks {
		check(at(path+".model.fallbacks", i), ref)
	}
}

func (c *Catalog) providerIDs() []string {
	ids := make([]string, len(c.Providers))
	for i, p := range c.Providers {
		ids[i] = p.ID
	}
	return ids
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
