package diskengine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestFullDisk pushes until the disk is full: what ends messages still works, also
// after opening again, a purge makes room, and then pushes are accepted again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	clock := enginetest.NewClock()
	fs := newSizeFS(8 << 20)
	p := place{"data", diskengine.Config{FS: fs, Now: clock.Now, Logger: quiet, MemTableBytes: smallTable, CacheBytes: 1 << 20,
		MinFreeBytes: -1, BallastBytes: 2 << 20}}
	e := p.open(t)
	if free := fs.free(); free > 6<<20 {
		t.Fatalf("%d bytes are free: there is no ballast", free)
	}
	n := 0
	push := func() error {
		m := message("q", fmt.Sprint(n), 0)
		m.Body = make([]byte, 900)
		for i := range m.Body {
			m.Body[i] = byte(n * i >> 3) // hard to compress
		}
		r, err := e.Push(t.Context(), []engine.Message{m})
		if err == nil {
			err = r[0].Err
		}
		if err == nil {
			n++
		}
		return err
	}
	var err error
	for err == nil {
		err = push()
	}
	if !errors.Is(err, engine.ErrNoSpace) {
		t.Fatalf("push on a full disk: %v", err)
	}
	end := func() {
		t.Helper()
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 300, Remote: true}})
		if err != nil || len(g.Queues[0].Messages) != 300 {
			t.Fatal(err, len(g.Queues[0].Messages))
		}
		var s []engine.Settlement
		for i, l := range g.Queues[0].Messages {
			s = append(s, engine.Settlement{Token: l.Token, Do: []engine.Action{engine.Ack, engine.Retry, engine.Bury}[i%3]})
		}
		out, err := e.Settle(t.Context(), s)
		for i := range out {
			err = errors.Join(err, out[i].Err)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			n--
			if errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", Key: fmt.Sprint(n)}}); err != nil || errs[0] != nil {
				t.Fatal(i, err, errs)
			}
		}
		if r, err := e.(engine.Redriver).Redrive(t.Context(), "q", nil, 50); err != nil || r.Redriven != 50 {
			t.Fatal(err, r)
		}
	}
	end()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = p.open(t)
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	end()
	if _, err := e.(engine.Purger).Purge(t.Context(), "q", engine.PurgeDead); err != nil {
		t.Fatal(err)
	}
	n += 1e6 // none of these keys is held
	for {
		clock.Advance(time.Second)
		if err = push(); err == nil {
			break
		}
		if !errors.Is(err, engine.ErrNoSpace) || t.Context().Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestFullDiskOpenedAgain opens a full disk again and again: as long as there is no
// room for the ballast that was given up, no push is accepted, and the engine goes on.
func TestFullDiskOpenedAgain(t *testing.T) {
	t.Parallel()
	clock := enginetest.NewClock()
	fs := newSizeFS(8 << 20)
	p := place{"data", diskengine.Config{FS: fs, Now: clock.Now, Logger: quiet, MemTableBytes: smallTable, CacheBytes: 1 << 20,
		MinFreeBytes: -1, BallastBytes: 2 << 20, RetryFor: -1}}
	e := p.open(t)
	n := 0
	push := func() error {
		m := message("q", fmt.Sprint(n), 0)
		m.Body = make([]byte, 900)
		for i := range m.Body {
			m.Body[i] = byte(n * i >> 3) // hard to compress
		}
		n++
		r, err := e.Push(t.Context(), []engine.Message{m})
		if err == nil {
			err = r[0].Err
		}
		return err
	}
	var err error
	for round := range 3 {
		for err = nil; err == nil; {
			err = push()
		}
		if !errors.Is(err, engine.ErrNoSpace) {
			t.Fatalf("round %d: %v", round, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = p.open(t)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
