package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// printer writes the results of a command: a table for people or, with --json, one object a
// line. It keeps its first error, which page and flush return.
type printer struct {
	p      *Program
	table  *tabwriter.Writer
	enc    *json.Encoder
	buf    *bufio.Writer
	err    error
	widths []int // of all columns but the last
	rows   int   // not written out yet
	all    int   // including those written out
	padded bool  // some rows have been written out
}

func (p *Program) printer() *printer {
	buf := bufio.NewWriter(p.Stdout)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	return &printer{p: p, buf: buf, enc: enc, table: tabwriter.NewWriter(buf, 0, 0, 2, ' ', 0)}
}

// show prints a single result.
func (p *Program) show(object any, format string, args ...any) error {
	o := p.printer()
	o.line(object, format, args...)
	return o.flush()
}

// jsonFlag adds the flag --json.
func (p *Program) jsonFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().BoolVar(&p.json, "json", false, usage)
}

// head writes the headings of a table.
func (o *printer) head(columns ...any) {
	if !o.p.json {
		o.row(nil, columns...)
	}
}

// row writes object as JSON, or the cells as a row of the table.
func (o *printer) row(object any, cells ...any) {
	if o.p.json {
		o.object(object)
		return
	}
	o.rows++
	o.all++
	for i, c := range cells {
		text := shown(fmt.Sprint(c))
		if i < len(cells)-1 {
			if i == len(o.widths) {
				o.widths = append(o.widths, 0)
			}
			n := utf8.RuneCountInString(text)
			o.widths[i] = max(o.widths[i], n)
			if o.padded {
				text += strings.Repeat(" ", o.widths[i]-n)
			}
			text += "\t"
		}
		fmt.Fprint(o.table, text)
	}
	fmt.Fprintln(o.table)
}

// pageRows is how many rows are gathered to find the widths of their columns.
const pageRows = 500

// page writes out the rows of a long table once there are enough. Later rows keep the widths
// of columns or widen them.
func (o *printer) page() error {
	if o.rows < pageRows {
		return o.err
	}
	o.rows, o.padded = 0, true
	return o.flush()
}

// pageSoon is like page, but with --json it writes out each result at once. Use it for slow
// commands.
func (o *printer) pageSoon() error {
	if o.p.json {
		return o.flush()
	}
	return o.page()
}

// line writes object as JSON, or a line of text for people.
func (o *printer) line(object any, format string, args ...any) {
	if o.p.json {
		o.object(object)
	}
	o.say(format, args...)
}

// say writes a line for people, and nothing with --json.
func (o *printer) say(format string, args ...any) {
	o.text(fmt.Sprintf(format, shownValues(args)...) + "\n")
}

// text writes text that is safe for a terminal as it is.
func (o *printer) text(s string) {
	if !o.p.json {
		o.err = cmp.Or(o.err, o.table.Flush())
		o.buf.WriteString(s) // flush returns its error
	}
}

func (o *printer) object(v any) { o.err = cmp.Or(o.err, o.enc.Encode(v)) }

// flush writes out everything. Call it at the end.
func (o *printer) flush() error {
	o.err = cmp.Or(o.err, o.table.Flush(), o.buf.Flush())
	return o.err
}

// asAPI is an object as the HTTP API writes it, by a function of package wire.
type asAPI func(b []byte) []byte

// MarshalJSON returns the object. The encoder puts it on one line.
func (write asAPI) MarshalJSON() ([]byte, error) { return write(nil), nil }

func messageJSON(m *tarry.Info, body bool) asAPI {
	how := wire.NoBodies
	if body {
		how = wire.AsJSON
	}
	return func(b []byte) []byte { return wire.AppendInfo(b, &engine.Lease{Info: *m}, how) }
}

// dueText writes a due time for people.
func (p *Program) dueText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return formatTime(t) + " (" + away(t, p.Now()) + ")"
}

// confirm asks before something is destroyed, such as "drop 3 messages". Where nobody can
// answer, --yes must be given. An interrupt counts as no.
func (p *Program) confirm(ctx context.Context, what string) error {
	if p.yes {
		return nil
	}
	if !p.Terminal {
		return usagef("confirm with --yes", "this would %s, and nobody is there to ask", what)
	}
	fmt.Fprintf(p.Stderr, "This will %s. Go on? [y/N] ", what)
	answers := make(chan string, 1)
	go func() { // the read may block until the process ends
		answer, _ := bufio.NewReader(p.Stdin).ReadString('\n')
		answers <- answer
	}()
	var answer string
	select {
	case answer = <-answers:
	case <-ctx.Done():
		fmt.Fprintln(p.Stderr)
		return ctx.Err()
	}
	if answer == "" {
		fmt.Fprintln(p.Stderr)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return failedf(nil, "answer y, or give --yes", "nothing was done")
}

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
