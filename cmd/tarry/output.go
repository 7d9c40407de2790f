package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/wire"
)

// printer writes what a command has to show: a table for people or, with --json,
// an object a line for programs.
type printer struct {
	p      *Program
	json   bool
	table  *tabwriter.Writer
	enc    *json.Encoder
	buf    *bufio.Writer
	widths []int // of the columns but the last
	rows   int   // not yet written out
	all    int   // with those written out
	padded bool  // rows went before
}

func (p *Program) printer(asJSON bool) *printer {
	buf := bufio.NewWriter(p.Stdout)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	return &printer{p: p, json: asJSON, buf: buf, enc: enc, table: tabwriter.NewWriter(buf, 0, 0, 2, ' ', 0)}
}

// head writes the headings of a table.
func (o *printer) head(columns ...string) {
	if !o.json {
		_ = o.row(nil, asCells(columns)...)
	}
}

func asCells(columns []string) []any {
	cells := make([]any, len(columns))
	for i, c := range columns {
		cells[i] = c
	}
	return cells
}

// row writes object in JSON, the cells in a table.
func (o *printer) row(object any, cells ...any) error {
	if o.json {
		return o.enc.Encode(object)
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
	_, err := fmt.Fprintln(o.table)
	return err
}

// pageRows is how many rows of a table are gathered to find how wide its columns are.
const pageRows = 500

// page writes out what there is of a table that goes on, once that is much. The columns
// stay as wide as they are, or become wider.
func (o *printer) page() error {
	if o.rows < pageRows {
		return nil
	}
	o.rows, o.padded = 0, true
	return o.flush()
}

// line writes object in JSON, a line of text for people.
func (o *printer) line(object any, format string, args ...any) error {
	if o.json {
		return o.enc.Encode(object)
	}
	_, err := fmt.Fprintf(o.buf, format+"\n", shownValues(args)...)
	return err
}

// flush writes out everything; to be called at the end.
func (o *printer) flush() error {
	if err := o.table.Flush(); err != nil {
		return err
	}
	return o.buf.Flush()
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

// lockedWriter lets many goroutines write, each Write whole.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(b)
}
