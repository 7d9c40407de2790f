package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
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

// messageJSON is a message as the HTTP API writes it.
type messageJSON struct {
	ID           string          `json:"id"`
	Queue        string          `json:"queue"`
	Key          string          `json:"key,omitempty"`
	State        string          `json:"state"`
	Due          string          `json:"due"`
	Created      string          `json:"created,omitempty"`
	Expires      string          `json:"expires,omitempty"`
	Attempt      uint32          `json:"attempt"`
	MaxAttempts  uint32          `json:"max_attempts"`
	Priority     uint32          `json:"priority"`
	Backoff      []string        `json:"backoff,omitempty"`
	TTR          string          `json:"ttr,omitempty"`
	Headers      headersJSON     `json:"headers,omitempty"`
	ContentType  string          `json:"content_type,omitempty"`
	Body         json.RawMessage `json:"body,omitempty"`
	BodyBase64   *string         `json:"body_base64,omitempty"`
	LastError    string          `json:"last_error,omitempty"`
	LeaseExpires string          `json:"lease_expires,omitempty"`
	Died         string          `json:"died,omitempty"`
}

func toJSON(m tarry.Info, body bool) messageJSON {
	j := messageJSON{
		ID: m.ID.String(), Queue: m.Queue, Key: m.Key, State: m.State.String(),
		Due: formatTime(m.Due), Created: formatTime(m.Created), Expires: formatTime(m.Expires),
		Attempt: m.Attempt, MaxAttempts: m.MaxAttempts, Priority: m.Priority,
		Headers: m.Headers, ContentType: m.ContentType, LastError: m.LastError,
		LeaseExpires: formatTime(m.Deadline), Died: formatTime(m.Died),
	}
	if m.TTR > 0 {
		j.TTR = tarry.FormatDuration(m.TTR)
	}
	for _, d := range m.Backoff {
		j.Backoff = append(j.Backoff, tarry.FormatDuration(d))
	}
	if body {
		if isJSON(m.ContentType) && json.Valid(m.Body) {
			j.Body = m.Body
		} else {
			s := base64.StdEncoding.EncodeToString(m.Body)
			j.BodyBase64 = &s
		}
	}
	return j
}

// headersJSON are the headers of a message: an object in the order in which the names
// first came; a name that came more than once has an array of values.
type headersJSON []engine.Header

// MarshalJSON makes the object.
func (hs headersJSON) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, h := range hs {
		same := func(o engine.Header) bool { return o.Name == h.Name }
		if slices.ContainsFunc(hs[:i], same) {
			continue
		}
		if i > 0 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, h.Name) // invalid UTF-8 is replaced
		b = append(b, ':')
		many := slices.ContainsFunc(hs[i+1:], same)
		if many {
			b = append(b, '[')
		}
		b, _ = jsontext.AppendQuote(b, h.Value)
		for _, o := range hs[i+1:] {
			if same(o) {
				b, _ = jsontext.AppendQuote(append(b, ','), o.Value)
			}
		}
		if many {
			b = append(b, ']')
		}
	}
	return append(b, '}'), nil
}

func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
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
