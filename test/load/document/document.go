// Package document puts what a command has measured into a page of the documentation.
//
// Guarantee: nothing outside the two marks of a block is changed, and a page without
// them is an error, not a page with a new block somewhere.
package document

import (
	"fmt"
	"os"
	"strings"
)

// Replace puts text between the marks of the block of that name:
//
//	<!-- begin NAME -->
//	<!-- end NAME -->
func Replace(path, name, text string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->\n"
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ends := strings.Cut(rest, end)
	if !ok || !ends {
		return fmt.Errorf("%s has no place for %s: it needs the lines %q and %q", path, name, begin, end)
	}
	return os.WriteFile(path, []byte(before+begin+"\n"+strings.TrimSpace(text)+"\n\n"+end+after), 0o644)
}
