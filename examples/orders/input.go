package main

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tarryhq/tarry"
)

// An order is one line of the file. A zero time is one that never happened.
type order struct {
	id                                   string
	purchased, approved, asked, answered time.Time
}

// An input is the content of a file of orders.
type input struct {
	orders []order
	sum    string // of the bytes: a replay goes on with this very file only
}

// start returns the first purchase or request: where the clock of a store stands
// when it is opened.
func (in *input) start() time.Time {
	if events := timeline(in.orders); len(events) > 0 {
		return events[0].at
	}
	return time.Unix(0, 0).UTC()
}

// An inputError says which line of the file cannot be used, and why.
type inputError struct {
	line int
	err  error
}

func (e *inputError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }
func (e *inputError) Unwrap() error { return e.err }

// The columns that are read, by the names in the header.
const (
	colID        = "order_id"
	colPurchased = "purchased_at"
	colApproved  = "approved_at"
	colAsked     = "review_asked_at"
	colAnswered  = "review_answered_at"
)

// readFile reads a file of orders.
func readFile(name string) (*input, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, err := readInput(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return in, nil
}

// readInput reads CSV with a header line.
func readInput(r io.Reader) (*input, error) {
	sum := sha256.New()
	rd := csv.NewReader(io.TeeReader(r, sum))
	rd.ReuseRecord = true
	header, err := rd.Read()
	if errors.Is(err, io.EOF) {
		return nil, &inputError{1, errors.New("the file is empty; it must begin with a line of column names")}
	}
	if err != nil {
		return nil, csvError(err)
	}
	col, err := columns(header)
	if err != nil {
		return nil, &inputError{1, err}
	}
	in := new(input)
	seen := make(map[string]int)
	for {
		rec, err := rd.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, csvError(err)
		}
		line, _ := rd.FieldPos(0)
		o, err := parseOrder(rec, col)
		if err != nil {
			return nil, &inputError{line, err}
		}
		if first, dup := seen[o.id]; dup {
			return nil, &inputError{line, fmt.Errorf("the %s %q was on line %d already", colID, o.id, first)}
		}
		seen[o.id] = line
		in.orders = append(in.orders, o)
	}
	in.sum = hex.EncodeToString(sum.Sum(nil))
	return in, nil
}

// csvError turns what the CSV reader says into one line with its number.
func csvError(err error) error {
	var e *csv.ParseError
	if !errors.As(err, &e) {
		return err
	}
	if errors.Is(e.Err, csv.ErrFieldCount) {
		return &inputError{e.Line, errors.New("the line has not as many fields as the header")}
	}
	return &inputError{e.Line, e.Err}
}

// columns finds where the columns stand.
func columns(header []string) (map[string]int, error) {
	col := make(map[string]int)
	for i, name := range header {
		name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")) // some programs write a byte order mark
		switch name {
		case colID, colPurchased, colApproved, colAsked, colAnswered:
			if _, dup := col[name]; dup {
				return nil, fmt.Errorf("the column %s is there twice", name)
			}
			col[name] = i
		}
	}
	for _, name := range []string{colID, colPurchased, colApproved, colAsked, colAnswered} {
		if _, ok := col[name]; !ok {
			return nil, fmt.Errorf("the column %s is missing", name)
		}
	}
	return col, nil
}

func parseOrder(rec []string, col map[string]int) (o order, err error) {
	o.id = strings.Clone(rec[col[colID]])
	if err := checkID(o.id); err != nil {
		return o, err
	}
	for _, f := range []struct {
		name string
		to   *time.Time
	}{
		{colPurchased, &o.purchased}, {colApproved, &o.approved},
		{colAsked, &o.asked}, {colAnswered, &o.answered},
	} {
		if *f.to, err = parseTime(rec[col[f.name]]); err != nil {
			return o, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return o, nil
}

// checkID refuses what cannot be a message's key.
func checkID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("the %s is empty", colID)
	case len(id) > tarry.MaxKeyBytes:
		return fmt.Errorf("the %s has %d bytes; at most %d are allowed", colID, len(id), tarry.MaxKeyBytes)
	case id == "." || id == ".." || !utf8.ValidString(id):
		return fmt.Errorf("the %s %q cannot be a message's key", colID, id)
	}
	return nil
}

// The years of the times that are taken: what is due 48 hours later must lie
// before the year 10000.
const minYear, maxYear = 1970, 9998

// parseTime reads RFC 3339, cut to the millisecond; empty is the zero time.
func parseTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		if len(s) > 40 {
			s = strings.ToValidUTF8(s[:40], "") + "…"
		}
		return time.Time{}, fmt.Errorf("%q is not a time; write it like 2018-03-01T12:00:00Z, or nothing if it never happened", s)
	}
	t = t.UTC().Truncate(time.Millisecond)
	if y := t.Year(); y < minYear || y > maxYear {
		return time.Time{}, fmt.Errorf("the year %d is outside %d to %d", y, minYear, maxYear)
	}
	return t, nil
}
