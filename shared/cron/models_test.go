package cron_test

import (
	"slices"
	"testing"
	"time"

	"laneway/shared/protocol"
)

// Runtime 7.5, row cron: a job's own model, and what may take its place: the configured
// ones where it says nothing, its own list, or with an empty one nothing.
func TestRuntime75_AJobsModelAndFallbacks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		for name, fallbacks := range map[string][]string{"not said": nil, "a list": {"x/y", "z"}, "strict": {}} {
			j := b.add(every(time.Hour), func(p *protocol.CronAddParams) {
				p.Payload.Model = protocol.Some("a/b")
				p.Payload.Fallbacks = fallbacks
			})
			in := b.Status(b.fires(j.ID)).Input
			if in.Model != "a/b" || !slices.Equal(in.Fallbacks, fallbacks) || (in.Fallbacks == nil) != (fallbacks == nil) {
				t.Errorf("%s: %+v", name, in)
			}
		}
	})
}
