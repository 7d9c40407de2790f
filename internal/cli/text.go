package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Keys, headers, errors and bodies come from anyone who may push. Characters that a terminal
// obeys instead of showing must not reach it: control characters, escape sequences, and marks
// that change the direction of text.

// shown returns a text for a line or a table. It is unchanged if all of it is printable, else
// quoted as in Go.
func shown(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return s
	}
	return strconv.Quote(s)
}

// shownValues makes all strings among the arguments safe to show.
func shownValues(args []any) []any {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = shown(s)
		}
	}
	return args
}

// oneLine makes any text one line that begins with the program's name. It escapes single
// characters, since quotes around the whole would make it hard to read.
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

// oneCell joins a text to one line of any length.
func oneCell(s string) string { return strings.Join(strings.Fields(s), " ") }

// maxCell is how many characters of a text fit in a table.
const maxCell = 60

// cut shortens a text to fit a cell.
func cut(s string) string {
	if r := []rune(s); len(r) > maxCell {
		return string(r[:maxCell-1]) + "…"
	}
	return orDash(s)
}

// cell makes any text fit a cell: one short line.
func cell(s string) string { return cut(oneCell(s)) }

// orDash returns a dash for an empty cell.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// readable returns a body for people: text as it is, else only the size.
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

// obeyed reports whether a terminal obeys a character, other than by going to the next line or
// column.
func obeyed(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069', r == '\u2028', r == '\u2029':
		return true
	}
	return unicode.IsControl(r)
}
