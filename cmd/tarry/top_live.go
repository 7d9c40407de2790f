package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/tmaxmax/go-sse"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/internal/wire"
)

const (
	// A server that is gone is tried again after liveRest at first, and then more and more
	// rarely, each time somewhat earlier or later than that.
	liveRest    = 500 * time.Millisecond
	liveRestMax = 10 * time.Second

	// liveSilence is how long a server may tell nothing, which says something every 15 s.
	liveSilence = 45 * time.Second

	// liveEventMost is how long an event may be, in bytes: 500 queues.
	liveEventMost = 8 << 20
)

// follower is told by a server of its queues as they change.
type follower struct {
	e    *httpengine.Engine
	now  func() time.Time
	rest *backoff.ExponentialBackOff

	last string // the id of the event that came last
	met  bool   // it has told something
	skew time.Duration
}

func newFollower(e *httpengine.Engine, now func() time.Time) *follower {
	rest := backoff.NewExponentialBackOff()
	rest.InitialInterval, rest.MaxInterval = liveRest, liveRestMax
	return &follower{e: e, now: now, rest: rest}
}

func (l *follower) run(ctx context.Context, tell func(news)) {
	for {
		err := l.listen(ctx, tell)
		if ctx.Err() != nil {
			return
		}
		if !l.met && !errors.Is(err, tarry.ErrUnavailable) {
			tell(news{err: err})
			return
		}
		rest := l.rest.NextBackOff()
		tell(news{skew: l.skew, link: link{why: err.Error(), again: l.now().Add(rest)}})
		pause(ctx, rest)
		if ctx.Err() == nil {
			tell(news{skew: l.skew, link: link{why: err.Error()}})
		}
	}
}

var (
	errLiveEnded  = errors.New("the server has hung up")
	errLiveSilent = errors.New("the server says nothing any more")
)

// listen tells what a server tells until it ends that, and returns why it did.
func (l *follower) listen(ctx context.Context, tell func(news)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, err := l.e.Stream(ctx, "/v1/live", "overview="+string(wire.OverviewAll), l.last)
	if err != nil {
		return err
	}
	defer body.Close()
	silence := time.AfterFunc(liveSilence, func() { cancel(errLiveSilent) })
	defer silence.Stop()
	up := link{up: true}
	for e, err := range sse.Read(&heard{body, silence}, &sse.ReadConfig{MaxEventSize: liveEventMost}) {
		if err != nil {
			if context.Cause(ctx) == errLiveSilent {
				return errLiveSilent
			}
			return errLiveEnded
		}
		if e.LastEventID != "" {
			l.last = e.LastEventID
		}
		var data struct {
			Queues  []wire.LiveQueue `json:"queues"`
			Resumed bool             `json:"resumed"`
			Now     wire.Time        `json:"now"`
			Up      bool             `json:"up"`
			Reason  string           `json:"reason"`
		}
		switch e.Type {
		case "begin", "store", "end", "queues":
			if err := json.Unmarshal([]byte(e.Data), &data); err != nil {
				return senseless("of its queues", err)
			}
		}
		switch e.Type {
		case "begin":
			l.met, l.skew = true, data.Now.Sub(l.now())
			l.rest.Reset()
			tell(news{whole: !data.Resumed, skew: l.skew, link: up})
		case "queues":
			tell(news{queues: data.Queues, skew: l.skew, link: up})
		case "store":
			up.stale = !data.Up
			tell(news{skew: l.skew, link: up})
		case "end":
			return errors.New(data.Reason)
		}
	}
	return errLiveEnded
}

// heard puts off the silence whenever something comes.
type heard struct {
	io.Reader
	silence *time.Timer
}

func (h *heard) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	if n > 0 {
		h.silence.Reset(liveSilence)
	}
	return n, err
}
