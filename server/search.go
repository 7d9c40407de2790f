package server

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

// The bounds of what one request reads. Each is checked between two calls of the engine.
const (
	searchMost   = 10_000 // messages
	searchQueues = 1000
	searchTime   = time.Second
)

var callFind = &call{
	id: "findMessages", group: groupMessage, does: "Find messages in all queues", exact: true,
	more: "Give key, or key_prefix, header or both. A request reads at most 10,000 messages of 1,000 queues, for 1 s; next goes on from there, also when nothing was found. " +
		"A token searches the queues that it may read.",
	query: wire.FindQuery.Shape, answers: ok("What was found.", wire.FoundPage.Ref()), fails: []error{engine.ErrUnsupported},
}

// search reads messages and keeps those that a filter chooses, until a bound is reached.
type search struct {
	c      *tarry.Client
	filter tarry.Filter
	until  time.Time
	read   int // messages, or queues in which a key was looked up
	queues int
}

func (s *Server) newSearch(c wire.Chosen) *search {
	f := tarry.Filter{KeyPrefix: c.KeyPrefix, Header: c.Header}
	if c.Ending != 0 {
		f.Match = func(m *tarry.Info) bool { return m.Ending == c.Ending }
	}
	return &search{c: s.c, filter: f, until: time.Now().Add(searchTime)}
}

// over reports whether a bound is reached.
func (f *search) over() bool {
	return f.read >= searchMost || f.queues >= searchQueues || !time.Now().Before(f.until)
}

// page is Client.ListPage of the chosen messages. Its Next leads to where it stopped.
func (f *search) page(ctx context.Context, q engine.ListQuery) (found engine.Page, err error) {
	most := cmp.Or(q.Limit, defaultPage)
	for q.Limit = most; ; q.Limit = engine.MaxPage {
		p, n, err := f.choose(ctx, q, most-len(found.Messages))
		if err != nil {
			return engine.Page{}, err
		}
		f.read += n
		found.Messages = append(found.Messages, p.Messages...)
		q.After, found.Next = p.Next, p.Next
		if p.Next == "" || len(found.Messages) >= most || f.over() || bodyBytes(found.Messages) >= engine.AnswerBytes {
			return found, nil
		}
	}
}

// choose reads a page and keeps at most most chosen messages. read says how many it read. If
// there are more, it reads the page again as far as the last one, for its Next.
func (f *search) choose(ctx context.Context, q engine.ListQuery, most int) (p engine.Page, read int, err error) {
	for {
		if p, err = f.c.ListPage(ctx, q); err != nil {
			return p, 0, err
		}
		all, chosen, last := len(p.Messages), p.Messages[:0], 0
		for i := range p.Messages {
			if m := &p.Messages[i]; len(chosen) < most && f.filter.Chooses(m) {
				chosen, last = append(chosen, *m), i+1
			}
		}
		p.Messages = chosen
		if len(chosen) < most || last == all {
			return p, all, nil
		}
		q.Limit = last
	}
}

func bodyBytes(ms []engine.Info) (n int) {
	for i := range ms {
		n += len(ms[i].Body)
	}
	return n
}

// find finds messages in all queues.
func (s *Server) find(x *exchange, r *http.Request) error {
	q, err := wire.FindQuery.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	return s.answerPage(x, r, s.searches, q.Body, func(b []byte, how wire.Bodies) ([]byte, error) {
		f := s.newSearch(q.Chosen)
		page, err := f.all(r.Context(), x, &q)
		return wire.AppendFound(b, &page, f.read, how), err
	})
}

// all searches one queue after another. Its cursor is the queue, a space, and the cursor
// within the queue; without that the queue was searched to its end.
func (f *search) all(ctx context.Context, x *exchange, q *wire.List) (found engine.Page, err error) {
	most := cmp.Or(q.Limit, defaultPage)
	look := func(queue, after string) (more bool, err error) {
		p, err := f.queue(ctx, q, engine.ListQuery{Queue: queue, After: after, Limit: most - len(found.Messages), Body: q.Body})
		f.queues++
		found.Messages, found.Next = append(found.Messages, p.Messages...), queue+" "+p.Next
		return p.Next == "" && !f.over() && len(found.Messages) < most && bodyBytes(found.Messages) < engine.AnswerBytes, err
	}
	last, within, ok := strings.Cut(q.After, " ")
	if !ok && q.After != "" {
		return found, wire.Wrong("after: must be the next of an earlier page")
	}
	if within != "" {
		if err := x.may(access.Read, last); err != nil {
			return found, err
		}
		if more, err := look(last, within); err != nil || !more {
			return found, err
		}
	}
	for queue, err := range x.queuesAfter(ctx, last) {
		if err != nil {
			return found, err
		}
		if more, err := look(queue, ""); err != nil || !more {
			return found, err
		}
	}
	found.Next = ""
	return found, nil
}

// queuesAfter yields the queues after a name that the token may read.
func (x *exchange) queuesAfter(ctx context.Context, after string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for more := true; more; more = after != "" {
			infos, next, err := x.s.c.Queues(ctx, after, engine.MaxPage)
			if err != nil {
				yield("", err)
				return
			}
			for i := range infos {
				if name := infos[i].Queue; (x.token == nil || x.token.May(access.Read, name)) && !yield(name, nil) {
					return
				}
			}
			after = next
		}
	}
}

// queue searches a queue: for a key, or for what the filter chooses.
func (f *search) queue(ctx context.Context, q *wire.List, list engine.ListQuery) (p engine.Page, err error) {
	if q.Key == "" {
		return listStates(ctx, list, f.page, f.over)
	}
	f.read++
	m, err := f.c.Get(ctx, tarry.ByKey(q.Key).Of(list.Queue))
	switch {
	case err == nil:
		p.Messages = []engine.Info{m}
	case errors.Is(err, engine.ErrNotFound):
		err = nil
	}
	return p, err
}
