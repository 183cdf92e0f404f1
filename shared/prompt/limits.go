package prompt

import (
	"cmp"
	"slices"
	"strings"

	"laneway/shared/chars"
)

// Limits bound the injected files, in chars.
type Limits struct {
	PerFile int // 0: 20,000
	Total   int // 0: 60,000
}

const (
	defaultPerFile = 20_000
	defaultTotal   = 60_000
	userFileCap    = 4000 // USER.md, whatever PerFile says
	// leastUseful is the rest of the total that is not worth another file.
	leastUseful = 64
)

// FileReport says what became of one file.
type FileReport struct {
	Name      string `json:"name"`
	Path      string `json:"path"`
	Missing   bool   `json:"missing,omitempty"`
	Chars     int    `json:"chars"`         // of the file
	Injected  int    `json:"injectedChars"` // of it in the prompt, marks included
	Truncated bool   `json:"truncated,omitempty"`
	Dropped   bool   `json:"dropped,omitempty"` // the total was used up
}

// fit orders the files and cuts them to the limits. Empty files are left out.
func fit(files []File, limits Limits) ([]File, []FileReport) {
	perFile := cmp.Or(max(limits.PerFile, 0), defaultPerFile)
	left := cmp.Or(max(limits.Total, 0), defaultTotal)
	ordered := slices.Clone(files)
	slices.SortStableFunc(ordered, func(a, b File) int {
		return cmp.Or(cmp.Compare(rank(a.Name), rank(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	var kept []File
	var reports []FileReport
	for _, f := range ordered {
		if f.Missing {
			f.Content = "[MISSING] Expected at: " + f.Path
		}
		f.Content = strings.TrimSpace(f.Content)
		if f.Content == "" {
			continue
		}
		report := FileReport{Name: f.Name, Path: f.Path, Missing: f.Missing, Chars: chars.Count(f.Content)}
		if left < leastUseful {
			report.Dropped = true
			reports = append(reports, report)
			continue
		}
		limit := min(perFile, left)
		if f.Name == "USER.md" {
			limit = min(limit, userFileCap)
		}
		cut := truncate(f.Name, f.Content, limit)
		report.Truncated = cut != f.Content
		report.Injected = chars.Count(cut)
		left -= report.Injected
		f.Content = cut
		kept, reports = append(kept, f), append(reports, report)
	}
	return kept, reports
}

func truncated(reports []FileReport) bool {
	return slices.ContainsFunc(reports, func(r FileReport) bool { return r.Truncated || r.Dropped })
}

func projectContext(files []File) string {
	var b strings.Builder
	for i, f := range files {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString("## " + oneLine(f.Path) + "\n" + f.Content)
	}
	return b.String()
}
