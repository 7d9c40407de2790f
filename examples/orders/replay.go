package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/memengine"
)

// An event is something that happens to an order.
type event struct {
	at   time.Time
	kind kind
	job  *job
	id   string
}

// The kinds of events. Those of one instant happen in this order.
type kind int

const (
	trigger kind = iota // the purchase, or the request for a review
	callOff             // the payment, or the answer
	due                 // it is time to do the job
)

func (e *event) apply(ctx context.Context, c *tarry.Client) error {
	switch e.kind {
	case trigger:
		return e.job.plan(ctx, c, e.id, e.at)
	case callOff:
		return e.job.callOff(ctx, c, e.id)
	}
	return e.job.claim(ctx, c, e.id)
}

// columns are the columns of the file that read needs.
var columns = [...]string{"order_id", "purchased_at", "approved_at", "review_asked_at", "review_answered_at"}

// read returns the events of all orders in a file, ordered by time, and how many orders
// there are.
func (s *shop) read(file string) (events []event, orders int, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	rd := csv.NewReader(f)
	header, err := rd.Read()
	if err != nil {
		return nil, 0, fmt.Errorf("%s: the first line must name the columns: %w", file, err)
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff") // some programs write a byte order mark
	var cells [len(columns)]int
	for i, name := range columns {
		if cells[i] = slices.Index(header, name); cells[i] < 0 {
			return nil, 0, fmt.Errorf("%s: the column %s is missing", file, name)
		}
	}
	seen := make(map[string]bool)
	for {
		row, err := rd.Read()
		if errors.Is(err, io.EOF) {
			slices.SortFunc(events, func(a, b event) int {
				return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.kind, b.kind))
			})
			return events, len(seen), nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", file, err)
		}
		line, _ := rd.FieldPos(0)
		id := row[cells[0]]
		if id == "" || seen[id] {
			return nil, 0, fmt.Errorf("%s: line %d: the order_id %q is empty, or another line has it", file, line, id)
		}
		seen[id] = true
		var at [len(columns)]time.Time
		for i, cell := range cells[1:] {
			if at[i], err = parseTime(row[cell]); err != nil {
				return nil, 0, fmt.Errorf("%s: line %d: %s: %w", file, line, columns[i+1], err)
			}
		}
		events = s.unpaid.events(events, id, at[0], at[1])
		events = s.review.events(events, id, at[2], at[3])
	}
}

// events appends the events of one order for this job.
func (j *job) events(all []event, id string, triggered, calledOff time.Time) []event {
	if triggered.IsZero() {
		return all
	}
	all = append(all, event{triggered, trigger, j, id}, event{triggered.Add(j.delay), due, j, id})
	if calledOff.IsZero() {
		return all
	}
	if calledOff.Before(triggered) {
		calledOff = triggered
	}
	return append(all, event{calledOff, callOff, j, id})
}

// parseTime reads a time in RFC 3339, truncated to the millisecond; empty is the zero time.
// A message that is due 48 hours later must still be due before the year 10000.
func parseTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if t = t.UTC(); err != nil || t.Year() < 1970 || t.Year() > 9998 {
		return time.Time{}, fmt.Errorf("%.40q is not a time of the years 1970 to 9998 like 2018-03-01T12:00:00Z", s)
	}
	return t.Truncate(time.Millisecond), nil
}

// A clock stands still until it is set.
type clock struct{ ms atomic.Int64 }

func (c *clock) now() time.Time  { return time.UnixMilli(c.ms.Load()).UTC() }
func (c *clock) set(t time.Time) { c.ms.Store(t.UnixMilli()) }

// replay lets the events happen in virtual time. The messages are in the directory dir, or
// in memory if dir is "".
func replay(ctx context.Context, events []event, dir string) (err error) {
	clk := new(clock)
	var c *tarry.Client
	if dir == "" {
		c = tarry.New(memengine.New(&memengine.Config{Now: clk.now}), nil)
	} else {
		eng, err := diskengine.Open(dir, &diskengine.Config{Now: clk.now})
		if err != nil {
			return err
		}
		c = tarry.New(eng, nil)
	}
	defer func() { err = errors.Join(err, c.Close(), c.Engine().Close()) }()
	for _, e := range events {
		clk.set(e.at)
		if err := e.apply(ctx, c); err != nil {
			return err
		}
	}
	return nil
}
