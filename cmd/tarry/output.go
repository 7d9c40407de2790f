package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tarryhq/tarry"
)

// printer writes what a command has to show: a table for people or, with --json,
// an object a line for programs.
type printer struct {
	p     *Program
	json  bool
	table *tabwriter.Writer
	enc   *json.Encoder
	buf   *bufio.Writer
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
		fmt.Fprintln(o.table, strings.Join(columns, "\t"))
	}
}

// row writes object in JSON, the cells in a table.
func (o *printer) row(object any, cells ...any) error {
	if o.json {
		return o.enc.Encode(object)
	}
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(o.table, "\t")
		}
		fmt.Fprint(o.table, c)
	}
	_, err := fmt.Fprintln(o.table)
	return err
}

// line writes object in JSON, a line of text for people.
func (o *printer) line(object any, format string, args ...any) error {
	if o.json {
		return o.enc.Encode(object)
	}
	_, err := fmt.Fprintf(o.buf, format+"\n", args...)
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
	ID           string            `json:"id"`
	Queue        string            `json:"queue"`
	Key          string            `json:"key,omitempty"`
	State        string            `json:"state"`
	Due          string            `json:"due"`
	Created      string            `json:"created,omitempty"`
	Expires      string            `json:"expires,omitempty"`
	Attempt      uint32            `json:"attempt"`
	MaxAttempts  uint32            `json:"max_attempts"`
	Priority     uint32            `json:"priority"`
	Backoff      []string          `json:"backoff,omitempty"`
	TTR          string            `json:"ttr,omitempty"`
	Headers      map[string]string `json:"headers,omitempty"`
	ContentType  string            `json:"content_type,omitempty"`
	Body         json.RawMessage   `json:"body,omitempty"`
	BodyBase64   *string           `json:"body_base64,omitempty"`
	LastError    string            `json:"last_error,omitempty"`
	LeaseExpires string            `json:"lease_expires,omitempty"`
	Died         string            `json:"died,omitempty"`
}

func toJSON(m tarry.Info, body bool) messageJSON {
	j := messageJSON{
		ID: m.ID.String(), Queue: m.Queue, Key: m.Key, State: m.State.String(),
		Due: formatTime(m.Due), Created: formatTime(m.Created), Expires: formatTime(m.Expires),
		Attempt: m.Attempt, MaxAttempts: m.MaxAttempts, Priority: m.Priority,
		ContentType: m.ContentType, LastError: m.LastError,
		LeaseExpires: formatTime(m.Deadline), Died: formatTime(m.Died),
	}
	if m.TTR > 0 {
		j.TTR = tarry.FormatDuration(m.TTR)
	}
	for _, d := range m.Backoff {
		j.Backoff = append(j.Backoff, tarry.FormatDuration(d))
	}
	for _, h := range m.Headers {
		if j.Headers == nil {
			j.Headers = make(map[string]string)
		}
		j.Headers[h.Name] = h.Value
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

func isJSON(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}

// readable writes a body for people: as it is when it is text, else its size.
func readable(body []byte) string {
	if len(body) == 0 {
		return "(empty)"
	}
	if utf8.Valid(body) && !strings.ContainsFunc(string(body), func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
		return strings.TrimRight(string(body), "\n")
	}
	return fmt.Sprintf("(%d bytes; --json shows them)", len(body))
}

// orDash fills an empty cell.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// cell makes any text fit a cell: one line, no tabs, not too long.
func cell(s string) string {
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)), " ")
	if r := []rune(s); len(r) > 60 {
		s = string(r[:59]) + "…"
	}
	return orDash(s)
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
