package cli

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

// news is news of queues and of the connection.
type news struct {
	queues []wire.LiveQueue
	whole  bool          // these are all queues: forget earlier ones
	more   bool          // there are more queues than these
	skew   time.Duration // how far the server's clock is ahead of ours
	state  string        // of the connection
	why    string        // why the connection was lost
	err    error         // going on is of no use
}

// The states of a connection.
const (
	connecting   = "connecting"
	live         = "live"
	reconnecting = "reconnecting"
	silentStore  = "the store does not answer"
)

const (
	boardSpan  = 5 * time.Minute // rows sum up this span, as those of /v1/live do
	boardStep  = 10 * time.Second
	boardRates = 6 // a rate is taken over this many steps

	maxPolled = 10_000           // most queues read from a store, the first by name
	pollLimit = 10 * time.Second // for one round

	// A server that is gone is tried again after liveRest, then less and less often.
	liveRest    = 500 * time.Millisecond
	liveRestMax = 10 * time.Second

	liveSilence   = 45 * time.Second // a server silent for longer is gone: it sends something every 15 s
	liveEventMost = 8 << 20          // bytes of an event, which holds at most 500 queues
)

// poll asks a directly opened store again and again.
func poll(ctx context.Context, c *tarry.Client, every time.Duration, tell func(news)) {
	repeat(ctx, every, func() {
		ctx, cancel := context.WithTimeout(ctx, pollLimit)
		defer cancel()
		if rows, more, err := askBoard(ctx, c, maxPolled); err != nil {
			tell(news{state: reconnecting, why: err.Error()})
		} else {
			tell(news{queues: rows, whole: true, more: more, state: live})
		}
	})
}

// repeat calls do once per every, for at most a quarter of the time.
func repeat(ctx context.Context, every time.Duration, do func()) {
	for ctx.Err() == nil {
		began := time.Now()
		do()
		pause(ctx, max(every, 3*time.Since(began)))
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// askBoard returns at most so many queues and, if a server keeps trends, their recent past.
// more: there are further queues.
func askBoard(ctx context.Context, c *tarry.Client, most int) (rows []wire.LiveQueue, more bool, err error) {
	trends, kept, err := trendsOf(ctx, c, boardSpan, boardStep)
	if err != nil {
		return nil, false, err
	}
	for q, err := range c.AllQueues(ctx) {
		if err != nil {
			return nil, false, err
		}
		if len(rows) == most {
			return rows, true, nil
		}
		var r wire.LiveQueue
		r.SetInfo(&q)
		if kept {
			r.Trend = new(wire.Happened)
		}
		if t := trends[r.Queue]; t != nil {
			*r.Trend = t.Happened
			r.PushedPerS, r.AckedPerS = perSecond(t.Spark.Pushed), perSecond(t.Spark.Acked)
		}
		rows = append(rows, r)
	}
	return rows, false, nil
}

// beyond adds the problems that no row shows: a store that is not ready, and recent deaths. If
// a call fails it finds fewer.
func (f *finder) beyond(ctx context.Context, c *tarry.Client) {
	_, _ = f.readiness(ctx, c)
	f.store(c)
	caps := c.Capabilities()
	for q, err := range c.AllQueues(ctx) {
		if err != nil || f.deaths(ctx, c, &caps, q) != nil {
			return
		}
	}
}

// perSecond returns the rate over the last minute. It ignores the last step, which has not
// ended.
func perSecond(steps []uint64) float64 {
	n := uint64(0)
	over := steps[:max(0, len(steps)-1)]
	for _, s := range over[max(0, len(over)-boardRates):] {
		n += s
	}
	return float64(n) / (boardRates * boardStep).Seconds()
}

// follower follows the queues of a server as they change.
type follower struct {
	e       *httpengine.Engine
	now     func() time.Time
	silence time.Duration // a server silent for longer is gone
	met     bool          // the server has answered before
	skew    time.Duration
}

// run follows the server until ctx ends, or the first request is refused.
func (l *follower) run(ctx context.Context, tell func(news)) {
	rest := backoff.NewExponentialBackOff()
	rest.InitialInterval, rest.MaxInterval = liveRest, liveRestMax
	for {
		err := l.listen(ctx, func(n news) {
			rest.Reset()
			tell(n)
		})
		switch {
		case ctx.Err() != nil:
			return
		case !l.met && !errors.Is(err, tarry.ErrUnavailable):
			tell(news{err: err})
			return
		}
		tell(news{skew: l.skew, state: reconnecting, why: err.Error()})
		pause(ctx, rest.NextBackOff())
	}
}

var (
	errLiveEnded  = errors.New("the server has hung up")
	errLiveSilent = errors.New("the server says nothing any more")
)

// listen passes on events until the server ends them, and returns why.
func (l *follower) listen(ctx context.Context, tell func(news)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, err := l.e.Stream(ctx, "/v1/live", "overview="+string(wire.OverviewAll), "")
	if err != nil {
		return err
	}
	defer body.Close()
	silence := time.AfterFunc(l.silence, func() { cancel(errLiveSilent) })
	defer silence.Stop()
	state := live
	for e, err := range sse.Read(&heard{body, silence, l.silence}, &sse.ReadConfig{MaxEventSize: liveEventMost}) {
		switch {
		case context.Cause(ctx) == errLiveSilent:
			return errLiveSilent
		case err != nil:
			return errLiveEnded
		}
		var data struct {
			Queues []wire.LiveQueue `json:"queues"`
			Now    wire.Time        `json:"now"`
			Up     bool             `json:"up"`
			Reason string           `json:"reason"`
		}
		switch e.Type {
		case "begin", "queues", "store", "end":
		default:
			continue
		}
		if err := json.Unmarshal([]byte(e.Data), &data); err != nil {
			return senseless("of its queues", err)
		}
		switch {
		case e.Type == "begin":
			l.met, l.skew = true, data.Now.Sub(l.now())
		case e.Type == "end":
			return errors.New(data.Reason)
		case e.Type == "store" && data.Up:
			state = live
		case e.Type == "store":
			state = silentStore
		}
		tell(news{queues: data.Queues, whole: e.Type == "begin", skew: l.skew, state: state})
	}
	return errLiveEnded
}

// heard restarts the silence timer whenever bytes arrive, even comments.
type heard struct {
	io.Reader
	silence *time.Timer
	after   time.Duration
}

func (h *heard) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	if n > 0 {
		h.silence.Reset(h.after)
	}
	return n, err
}
