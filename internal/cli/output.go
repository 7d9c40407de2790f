package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
)

// printer writes what a command has to show: a table for people or, with --json, an object a
// line for programs. It remembers its first error, which page and flush return.
type printer struct {
	p      *Program
	table  *tabwriter.Writer
	enc    *json.Encoder
	buf    *bufio.Writer
	err    error
	widths []int // of the columns but the last
	rows   int   // not yet written out
	all    int   // with those written out
	padded bool  // rows went before
}

func (p *Program) printer() *printer {
	buf := bufio.NewWriter(p.Stdout)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	return &printer{p: p, buf: buf, enc: enc, table: tabwriter.NewWriter(buf, 0, 0, 2, ' ', 0)}
}

// show prints the only result of a command.
func (p *Program) show(object any, format string, args ...any) error {
	o := p.printer()
	o.line(object, format, args...)
	return o.flush()
}

// jsonFlag gives a command the flag --json.
func (p *Program) jsonFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().BoolVar(&p.json, "json", false, usage)
}

// head writes the headings of a table.
func (o *printer) head(columns ...any) {
	if !o.p.json {
		o.row(nil, columns...)
	}
}

// row writes object in JSON, the cells in a table.
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

// pageRows is how many rows of a table are gathered to find how wide its columns are.
const pageRows = 500

// page writes out a long table, once many rows have been gathered. Its columns keep their
// width, or become wider.
func (o *printer) page() error {
	if o.rows < pageRows {
		return o.err
	}
	o.rows, o.padded = 0, true
	return o.flush()
}

// pageSoon is page for results that take long, so that a program gets each at once.
func (o *printer) pageSoon() error {
	if o.p.json {
		return o.flush()
	}
	return o.page()
}

// line writes object in JSON, a line of text for people.
func (o *printer) line(object any, format string, args ...any) {
	if o.p.json {
		o.object(object)
	}
	o.say(format, args...)
}

// say writes a line for people, and nothing in JSON.
func (o *printer) say(format string, args ...any) {
	o.text(fmt.Sprintf(format, shownValues(args)...) + "\n")
}

// text writes what a terminal may be given as it is.
func (o *printer) text(s string) {
	if !o.p.json {
		o.err = cmp.Or(o.err, o.table.Flush())
		o.buf.WriteString(s) // flush returns its error
	}
}

func (o *printer) object(v any) { o.err = cmp.Or(o.err, o.enc.Encode(v)) }

// flush writes out everything. It is to be called at the end.
func (o *printer) flush() error {
	o.err = cmp.Or(o.err, o.table.Flush(), o.buf.Flush())
	return o.err
}

// asAPI is an object as the HTTP API writes it, by one of wire's functions.
type asAPI func(b []byte) []byte

// MarshalJSON writes the object; the encoder brings it onto one line.
func (write asAPI) MarshalJSON() ([]byte, error) { return write(nil), nil }

func messageJSON(m *tarry.Info, body bool) asAPI {
	how := wire.NoBodies
	if body {
		how = wire.AsJSON
	}
	return func(b []byte) []byte { return wire.AppendInfo(b, m, "", how) }
}

// dueText writes a due time for people.
func (p *Program) dueText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return formatTime(t) + " (" + away(t, p.Now()) + ")"
}
