package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

// The bounds of a lease request.
const (
	MaxWait      = wire.MaxWait // to wait for the first message
	MaxQueues    = wire.MaxQueues
	MaxQueuesNow = wire.MaxQueuesNow // without a wait, since each is asked separately
)

// nameCost is about how many bytes a queue in a lease request takes besides its name.
const nameCost = 300

var callLease = &call{
	id: "leaseMessages", group: groupWork, does: "Lease messages that are due", exact: true,
	more: "It waits for the first one as long as asked. When the client hangs up before the answer is written, the leases are released. " +
		"Without a wait queues are asked one after another until there are enough messages.",
	request: wire.Leasing.Shape, answers: ok("What was leased.", wire.LeaseAnswer.Ref()),
	fails:   []error{engine.ErrNotFound, engine.ErrLimit, engine.ErrNoSpace, engine.ErrUnsupported},
	example: json.RawMessage(`{"queues":["order.unpaid"],"max":10,"ttr":"60s"}`),
}

// lease leases messages that are due. It waits for the first one as long as asked.
func (s *Server) lease(x *exchange, r *http.Request) error {
	req, err := decode(x, r, wire.Leasing)
	if err != nil {
		return err
	}
	size := 0
	for _, q := range req.Queues {
		if err := x.may(access.Work, q); err != nil {
			return err
		}
		size += len(q) + nameCost
	}
	for _, r := range req.Room {
		size += len(r.Queue) + nameCost
	}
	if err := x.hold(size); err != nil {
		return err
	}
	if req.Wait == 0 {
		return s.leaseNow(x, r, req)
	}
	got, set, err := s.leaseWaiting(x, r, req)
	if err != nil {
		return err
	}
	err = x.recheck(access.Work)
	for i := range got.Messages {
		err = cmp.Or(err, x.may(access.Work, got.Messages[i].Queue))
	}
	if err != nil {
		s.release(r, got.Messages)
		return err
	}
	answered := wire.Leased{Messages: got.Messages, NextDue: got.NextDue, Now: got.Now, Set: set, Waited: got.Waited}
	for _, t := range got.Told {
		answered.Queues = append(answered.Queues, wire.Granted{Queue: t.Queue, Waited: true, Granted: engine.Granted{Expired: t.Expired, Died: t.Died, Held: t.Held}})
	}
	return s.leased(x, r, &answered)
}

// leased answers with leased messages.
func (s *Server) leased(x *exchange, r *http.Request, l *wire.Leased) error {
	return s.handOver(x, r, l.Messages, func(b []byte) []byte { return wire.AppendLeased(b, l, wantBodies(r)) })
}

// leaseWaiting waits in the client's dispatcher. It keeps one connection in eight free of
// waits, since settlements need some. The wait ends with nothing leased when the server shuts
// down or POST /v1/lease/end names its poll.
func (s *Server) leaseWaiting(x *exchange, r *http.Request, req wire.LeaseRequest) (got tarry.LeasedMessages, set string, err error) {
	defer s.waits.Add(-1)
	if s.waits.Add(1) > int64(s.cfg.MaxConnections-s.cfg.MaxConnections/8) {
		return got, "", refusal(http.StatusServiceUnavailable, "unavailable",
			"too many requests wait for messages", "try again, with fewer of them; tarry serve --max-connections allows more")
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(stopping(ctx), cancel)()
	if req.Poll != "" {
		name := x.own(req.Poll)
		if _, waits := s.polls.LoadOrStore(name, cancel); waits {
			return got, "", wire.Wrong("poll: one of this name is waiting already")
		}
		defer s.polls.Delete(name)
	}
	got, set, err = s.leaseFrom(ctx, x, r, req)
	if err != nil && ctx.Err() != nil && r.Context().Err() == nil {
		return tarry.LeasedMessages{Now: time.Now()}, set, nil
	}
	if got.Now.IsZero() {
		got.Now = time.Now()
	}
	return got, set, err
}

// leaseFrom leases from the named queues, or from those of a set, and returns the set's id, if
// any. If the poll of a new set fails or its client has gone, the set ends, since no client
// knows its id.
func (s *Server) leaseFrom(ctx context.Context, x *exchange, r *http.Request, req wire.LeaseRequest) (got tarry.LeasedMessages, id string, err error) {
	ask := tarry.LeaseRequest{
		Max: req.Max, Wait: req.Wait, Room: rooms(req.Room), LeaseOptions: tarry.LeaseOptions{TTR: req.TTR, Remote: true, Worker: req.Worker},
	}
	var n *set
	switch {
	case req.Set != "":
		n, err = s.sets.take(req.Set, x.token)
	case req.Keep:
		n, err = s.sets.add(s.c, req.Queues, x.token)
	}
	if err != nil {
		return got, "", err
	}
	if n == nil {
		s.workerAsks(x, r, req.Worker, req.Queues...)
		ask.Queues = req.Queues
		got, err = s.c.Lease(ctx, ask)
		return got, "", err
	}
	s.workerPolls(x, r, req.Worker, n)
	defer func() {
		if id == "" {
			s.sets.end(n)
		} else {
			s.sets.put(n)
		}
	}()
	got, err = n.Lease(ctx, ask)
	if req.Set != "" || err == nil || ctx.Err() != nil && r.Context().Err() == nil {
		id = n.id
	}
	return got, id, err
}

func rooms(all []wire.Room) map[string]int {
	if len(all) == 0 {
		return nil
	}
	room := make(map[string]int, len(all))
	for _, r := range all {
		room[r.Queue] = r.Max
	}
	return room
}

// leaseNow asks one queue after another until there are enough messages or bytes. It begins at
// a random queue, so that a busy one does not starve those after it.
func (s *Server) leaseNow(x *exchange, r *http.Request, req wire.LeaseRequest) error {
	s.workerAsks(x, r, req.Worker, req.Queues...)
	var l wire.Leased
	queues := make([]*wire.Granted, len(req.Queues)) // those asked so far
	first, bytes, room := rand.N(len(req.Queues)), 0, rooms(req.Room)
	for i := range req.Queues {
		q := (first + i) % len(req.Queues)
		left := req.Max - len(l.Messages)
		if left == 0 || bytes >= engine.AnswerBytes {
			break
		}
		if n, ok := room[req.Queues[q]]; ok {
			left = min(left, n)
		}
		if left == 0 {
			continue
		}
		g, err := s.c.LeaseNow(r.Context(), []engine.Want{{Queue: req.Queues[q], Max: left, TTR: req.TTR, Remote: true, Worker: req.Worker}})
		if err == nil {
			queues[q] = &wire.Granted{Queue: req.Queues[q], Granted: g.Queues[0]}
			if err = g.Queues[0].Err; g.Now.After(l.Now) {
				l.Now = g.Now
			}
		}
		if err != nil && len(l.Messages) == 0 {
			return err
		}
		if queues[q] == nil {
			continue
		}
		got := queues[q].Messages
		l.Messages = append(l.Messages, got...)
		for i := range got {
			bytes += len(got[i].Body)
		}
	}
	for _, g := range queues {
		if g == nil {
			continue
		}
		if len(l.Messages) == 0 && !g.NextDue.IsZero() && (l.NextDue.IsZero() || g.NextDue.Before(l.NextDue)) {
			l.NextDue = g.NextDue
		}
		g.Messages = nil // they are in l
		l.Queues = append(l.Queues, *g)
	}
	return s.leased(x, r, &l)
}

// messageSize returns about how many bytes a message takes in an answer.
func messageSize(m *engine.Info) int {
	size := 512 + len(m.Key) + len(m.LastError) + len(m.Body)*4/3
	for _, h := range m.Headers {
		size += len(h.Name) + len(h.Value) + 8
	}
	for _, f := range m.Failures {
		size += len(f.Worker) + len(f.Reason) + 96
	}
	return size
}

// handOver writes an answer with leases. If it has no room or cannot be written, the leases
// are released and their attempts do not count.
func (s *Server) handOver(x *exchange, r *http.Request, ls []engine.Lease, write func(b []byte) []byte) error {
	a, size := newAnswer(), 0
	defer a.free()
	for i := range ls {
		size += messageSize(&ls[i].Info)
	}
	err := x.hold(size)
	if err == nil {
		a.b = write(slices.Grow(a.b, size))
		err = x.hold(cap(a.b) - size)
	}
	if err != nil {
		s.release(r, ls)
		return err
	}
	s.workers.gave(x.worker, ls) // before the client can settle them
	err = r.Context().Err()      // check now: after the answer is written, the client may rightly have gone
	if err == nil {
		for i := range ls {
			ls[i].Info = engine.Info{} // the answer holds it, and writing may take long
		}
		err = a.write(x, http.StatusOK, len(ls) > 0)
	}
	if err == nil && len(ls) > 0 {
		err = flush(x.ResponseWriter)
	}
	if err != nil {
		s.release(r, ls)
	}
	return nil
}

// release gives back leases that the client did not get.
func (s *Server) release(r *http.Request, ls []engine.Lease) {
	if len(ls) == 0 {
		return
	}
	s.workers.tookBack(ls)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), releaseTimeout)
	defer cancel()
	if _, err := s.c.Settle(ctx, engine.Releases(ls)); err != nil {
		s.cfg.Logger.Warn("leases of a client that has gone could not be released; they will lapse", "count", len(ls), "error", err)
	}
}

// releaseTimeout bounds release.
const releaseTimeout = 30 * time.Second

// flush sends the answer at once, so that an error shows while the leases can still be
// released.
func flush(w http.ResponseWriter) error {
	err := http.NewResponseController(w).Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

var callClaim = &call{
	id: "claimMessage", group: groupWork, does: "Lease a message if it is due", exact: true,
	more:  "With if_state it takes a message that is in exactly this state, also one that is scheduled or, by id, dead, and also from a paused queue: a scheduled one is due from now on, a dead one live again.",
	query: wire.RefQuery.Shape, request: wire.Claiming.Shape, answers: ok("The message, leased to you.", wire.LeasedMessage.Ref()),
	fails: []error{
		engine.ErrNotFound, engine.ErrNotDue, engine.ErrLeased, engine.ErrStale, engine.ErrExists, engine.ErrLimit, engine.ErrNoSpace, engine.ErrUnsupported,
	},
	example: json.RawMessage(`{"ttr":"30s"}`),
}

// claim leases one message if it is due, or in the state that the query names.
func (s *Server) claim(x *exchange, r *http.Request) error {
	ref, err := x.refWithState(r)
	if err != nil {
		return err
	}
	req, err := decode(x, r, wire.Claiming)
	if err != nil {
		return err
	}
	s.workerAsks(x, r, req.Worker, ref.Queue)
	l, err := s.c.Claim(r.Context(), ref, tarry.LeaseOptions{TTR: req.TTR, Remote: true, Worker: req.Worker})
	if err != nil {
		return err
	}
	return s.handOver(x, r, []engine.Lease{l}, func(b []byte) []byte { return wire.AppendInfo(b, &l, wantBodies(r)) })
}
