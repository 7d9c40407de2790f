package server

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// The bounds of a lease request.
const (
	MaxWait      = time.Minute // for the first message
	MaxQueues    = tarry.MaxBatch
	MaxQueuesNow = 100 // without a wait: each is asked by itself
)

var leaseFields = []string{"queues", "max", "wait", "ttr", "poll"}

// lease reads a request for messages that are due, and the name that its wait is given.
// Without max it is one.
func (in *input) lease() (req tarry.LeaseRequest, poll string) {
	req = tarry.LeaseRequest{Max: 1, LeaseOptions: tarry.LeaseOptions{Remote: true}}
	var seen uint32
	if in.open("request", '{') {
		for {
			switch in.next(leaseFields, &seen) {
			case 0:
				in.texts("queues", MaxQueues, func(q string) { req.Queues = append(req.Queues, q) })
				continue
			case 1:
				if req.Max = int(in.whole("max", tarry.MaxLease)); req.Max == 0 {
					in.wrong("max: must be from 1 to %d", tarry.MaxLease)
				}
				continue
			case 2:
				if req.Wait = in.duration("wait"); req.Wait > MaxWait {
					in.wrong("wait: must be from 0s to %s", tarry.FormatDuration(MaxWait))
				}
				continue
			case 3:
				req.TTR = in.ttr("ttr")
				continue
			case 4:
				poll = in.pollName()
				continue
			}
			break
		}
		switch {
		case len(req.Queues) == 0:
			in.wrong("queues: name at least one")
		case len(req.Queues) > MaxQueuesNow && req.Wait == 0:
			in.wrong("queues: more than %d entries without a wait", MaxQueuesNow)
			in.hint("give a wait such as 1s, or ask in several requests")
		}
	}
	in.end()
	return req, poll
}

// lease leases what is due, waiting for the first message as long as asked.
func (s *Server) lease(x *exchange, r *http.Request) error {
	in, err := s.read(x, r)
	if err != nil {
		return err
	}
	req, poll := in.lease()
	if err := in.failed(); err != nil {
		return err
	}
	in.free()
	if req.Wait == 0 {
		return s.leaseNow(x, r, req)
	}
	got, err := s.leaseWaiting(r, req, poll)
	if err != nil {
		return err
	}
	if err := x.holdLeases(got.Messages); err != nil {
		s.release(r, got.Messages)
		return err
	}
	a := newAnswer()
	defer a.free()
	a.b = append(a.b, `{"messages":[`...)
	a.leases(got.Messages, wantBodies(r))
	a.b = append(a.b, `],"next_due":`...)
	a.b = appendTime(a.b, got.NextDue)
	a.b = append(a.b, `,"now":`...)
	a.b = appendTime(a.b, got.Now)
	a.ended(got.Ended)
	a.b = append(a.b, '}')
	return s.handOver(x, r, a, got.Messages)
}

// ended writes what ended in the queues before anybody got it, if anything did.
func (a *answer) ended(all []tarry.Ended) {
	for i, e := range all {
		if i == 0 {
			a.b = append(a.b, `,"queues":[`...)
		} else {
			a.b = append(a.b, ',')
		}
		a.b = append(a.b, `{"queue":`...)
		a.b = appendString(a.b, e.Queue)
		a.b = append(a.b, `,"expired":`...)
		a.b = strconv.AppendInt(a.b, int64(e.Expired), 10)
		a.b = append(a.b, `,"died":`...)
		a.b = strconv.AppendInt(a.b, int64(e.Died), 10)
		a.b = append(a.b, '}')
	}
	if len(all) > 0 {
		a.b = append(a.b, ']')
	}
}

// leaseWaiting waits in the client's dispatcher, but for one connection in eight: those
// who settle need some too. When the server shuts down, or the
// poll is ended by its name, the wait is over, with nothing leased.
func (s *Server) leaseWaiting(r *http.Request, req tarry.LeaseRequest, poll string) (tarry.LeasedMessages, error) {
	defer s.waits.Add(-1)
	if s.waits.Add(1) > int64(s.cfg.MaxConnections-s.cfg.MaxConnections/8) {
		return tarry.LeasedMessages{}, refusal(http.StatusServiceUnavailable, "unavailable",
			"as many requests wait for messages as may", "try again, with fewer of them; tarry serve --max-connections allows more")
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if stop := stopping(ctx); stop != nil {
		defer context.AfterFunc(stop, cancel)()
	}
	if poll != "" {
		if !s.polls.add(poll, cancel) {
			return tarry.LeasedMessages{}, wrong("poll: one of this name is waiting already")
		}
		defer s.polls.remove(poll)
	}
	got, err := s.c.Lease(ctx, req)
	if err != nil && ctx.Err() != nil && r.Context().Err() == nil {
		return tarry.LeasedMessages{Now: time.Now()}, nil
	}
	if got.Now.IsZero() {
		got.Now = time.Now()
	}
	return got, err
}

// leaseNow asks queue after queue until there are enough messages, or bytes, beginning
// with any, so that a busy queue does not starve those behind it.
func (s *Server) leaseNow(x *exchange, r *http.Request, req tarry.LeaseRequest) error {
	granted := make([]engine.Granted, len(req.Queues))
	asked := make([]bool, len(req.Queues))
	var all []engine.Lease
	var now time.Time
	first, bytes := rand.N(len(req.Queues)), 0
	for i := range req.Queues {
		q := (first + i) % len(req.Queues)
		left := req.Max - len(all)
		if left == 0 || bytes >= engine.AnswerBytes {
			break
		}
		g, err := s.c.LeaseNow(r.Context(), []engine.Want{{Queue: req.Queues[q], Max: left, TTR: req.TTR, Remote: true}})
		if err == nil {
			asked[q], granted[q], now = true, g.Queues[0], g.Now
			err = g.Queues[0].Err
		}
		if err != nil && len(all) == 0 {
			return err
		}
		all = append(all, granted[q].Messages...)
		for i := range granted[q].Messages {
			bytes += len(granted[q].Messages[i].Body)
		}
	}
	var next time.Time
	if len(all) == 0 {
		for _, g := range granted {
			if !g.NextDue.IsZero() && (next.IsZero() || g.NextDue.Before(next)) {
				next = g.NextDue
			}
		}
	}
	if err := x.holdLeases(all); err != nil {
		s.release(r, all)
		return err
	}
	a := newAnswer()
	defer a.free()
	a.b = append(a.b, `{"messages":[`...)
	a.leases(all, wantBodies(r))
	a.b = append(a.b, `],"next_due":`...)
	a.b = appendTime(a.b, next)
	a.b = append(a.b, `,"now":`...)
	a.b = appendTime(a.b, now)
	a.b = append(a.b, `,"queues":[`...)
	comma := false
	for i, g := range granted {
		if !asked[i] {
			continue
		}
		if comma {
			a.b = append(a.b, ',')
		}
		comma = true
		a.granted(req.Queues[i], g)
	}
	a.b = append(a.b, "]}"...)
	return s.handOver(x, r, a, all)
}

// leases writes leased messages.
func (a *answer) leases(ls []engine.Lease, how bodies) {
	for i := range ls {
		if i > 0 {
			a.b = append(a.b, ',')
		}
		a.b = appendMessage(a.b, &ls[i].Info, ls[i].Token, how)
	}
}

// granted writes what is known of a queue that was asked.
func (a *answer) granted(queue string, g engine.Granted) {
	a.b = append(a.b, `{"queue":`...)
	a.b = appendString(a.b, queue)
	a.b = append(a.b, `,"more":`...)
	a.b = strconv.AppendBool(a.b, g.More)
	a.b = append(a.b, `,"next_due":`...)
	a.b = appendTime(a.b, g.NextDue)
	a.b = append(a.b, `,"expired":`...)
	a.b = strconv.AppendInt(a.b, int64(g.Expired), 10)
	a.b = append(a.b, `,"died":`...)
	a.b = strconv.AppendInt(a.b, int64(g.Died), 10)
	if g.Err != nil {
		a.b = append(a.b, ',')
		a.b = appendError(a.b, toFailure(g.Err))
	}
	a.b = append(a.b, '}')
}

// holdLeases makes room for an answer with leases.
func (x *exchange) holdLeases(ls []engine.Lease) error {
	size := 0
	for i := range ls {
		size += messageSize(&ls[i].Info)
	}
	return x.hold(size)
}

// messageSize is about how many bytes a message takes in an answer.
func messageSize(m *engine.Info) int { return 512 + len(m.Key) + len(m.Body)*4/3 }

// handOver writes an answer with leases. When it cannot be written they are given
// back, attempt and all.
func (s *Server) handOver(x *exchange, r *http.Request, a *answer, ls []engine.Lease) error {
	err := r.Context().Err() // once it is written, the client may be gone with good reason
	if err == nil {
		for i := range ls {
			ls[i].Info = engine.Info{} // the answer has it; writing may take long
		}
		err = a.write(x, http.StatusOK)
	}
	if err == nil && len(ls) > 0 {
		err = flush(x.ResponseWriter)
	}
	if err != nil {
		s.release(r, ls)
	}
	return nil
}

// release gives back leases that nobody got.
func (s *Server) release(r *http.Request, ls []engine.Lease) {
	if len(ls) == 0 {
		return
	}
	back := make([]engine.Settlement, len(ls))
	for i, l := range ls {
		back[i] = engine.Settlement{Token: l.Token, Do: engine.Release}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), releaseTimeout)
	defer cancel()
	if _, err := s.c.Settle(ctx, back); err != nil {
		s.cfg.Logger.Warn("leases of a client that has gone could not be released; they will lapse", "count", len(ls), "error", err)
	}
}

// releaseTimeout bounds the release of leases that nobody got.
const releaseTimeout = 30 * time.Second

// flush pushes the answer out, so that an error shows while there is still something
// to do about it.
func flush(w http.ResponseWriter) error {
	if f, ok := w.(interface{ FlushError() error }); ok {
		return f.FlushError()
	}
	return nil
}

var claimFields = []string{"ttr"}

// claim leases one message if it is due.
func (s *Server) claim(x *exchange, r *http.Request) error {
	queue, ref, err := reference(r)
	if err != nil {
		return err
	}
	opts := tarry.LeaseOptions{Remote: true}
	if err := s.options(x, r, claimFields, func(in *input, _ int) { opts.TTR = in.ttr("ttr") }); err != nil {
		return err
	}
	l, err := s.c.Claim(r.Context(), queue, ref, opts)
	if err != nil {
		return err
	}
	ls := []engine.Lease{l}
	if err := x.holdLeases(ls); err != nil {
		s.release(r, ls)
		return err
	}
	a := newAnswer()
	defer a.free()
	a.b = appendMessage(a.b, &l.Info, l.Token, wantBodies(r))
	return s.handOver(x, r, a, ls)
}

// options reads a request all of whose fields may be missing, and the body with
// them.
func (s *Server) options(x *exchange, r *http.Request, names []string, each func(in *input, field int)) error {
	in, err := s.read(x, r)
	if err != nil {
		return err
	}
	var seen uint32
	if len(in.data) > 0 {
		if in.open("request", '{') {
			for f := in.next(names, &seen); f >= 0; f = in.next(names, &seen) {
				each(in, f)
			}
		}
		in.end()
	}
	if err := in.failed(); err != nil {
		return err
	}
	in.free()
	return nil
}
