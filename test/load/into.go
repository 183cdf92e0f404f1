package main

import (
	"fmt"
	"os"
	"strings"
)

// What is between these lines of a document is the last measurement.
const (
	tableBegins = "<!-- measured by make bench -->\n"
	tableEnds   = "<!-- end of what was measured -->\n"
)

// into puts a table into a document, in the place of the one that is there.
func into(path, table string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(b), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !ok || !ends {
		return fmt.Errorf("%s has no place for a table: it needs the lines %q and %q", path, tableBegins, tableEnds)
	}
	return os.WriteFile(path, []byte(before+tableBegins+"\n"+strings.TrimSpace(table)+"\n\n"+tableEnds+after), 0o644)
}
