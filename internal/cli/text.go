package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Keys, headers, errors and bodies come from anybody who may push. What a terminal
// would not show but obey (control characters, escape sequences, marks that turn the
// direction of writing) must not reach it.

// shown is a text for a line or a table: as it is when all of it can be printed, else
// quoted as in Go.
func shown(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return s
	}
	return strconv.Quote(s)
}

// shownValues are the arguments of a line, with all texts shown.
func shownValues(args []any) []any {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = shown(s)
		}
	}
	return args
}

// oneLine makes any text one line that begins with the program's name. Here quotes
// would hide what the line says, so that single characters are escaped.
func oneLine(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
	}
	s = strings.Join(strings.Fields(b.String()), " ")
	if !strings.HasPrefix(s, "tarry:") {
		s = "tarry: " + s
	}
	return s
}

// oneCell makes a text one line, whatever its length.
func oneCell(s string) string { return strings.Join(strings.Fields(s), " ") }

// maxCell is how many characters of a text a table shows.
const maxCell = 60

// cut shortens a text to fit a cell.
func cut(s string) string {
	if r := []rune(s); len(r) > maxCell {
		return string(r[:maxCell-1]) + "…"
	}
	return orDash(s)
}

// cell makes any text fit a cell: one line, not too long.
func cell(s string) string { return cut(oneCell(s)) }

// orDash fills an empty cell.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// readable writes a body for people: as it is when it is text, else its size.
func readable(body []byte) string {
	if len(body) == 0 {
		return "(empty)"
	}
	s := strings.ReplaceAll(string(body), "\r\n", "\n")
	if !utf8.ValidString(s) || strings.ContainsFunc(s, obeyed) {
		return fmt.Sprintf("(%d bytes; --json shows them)", len(body))
	}
	return strings.TrimRight(s, "\n")
}

// obeyed reports whether a terminal does something else with a character than to show
// it, or to go on to the next line or column.
func obeyed(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069', r == '\u2028', r == '\u2029':
		return true
	}
	return unicode.IsControl(r)
}
