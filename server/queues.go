package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

var callQueues = &call{
	id: "listQueues", group: groupQueue, does: "List the queues",
	query: wire.PageParameters, answers: ok("A page of queues.", wire.QueuePage.Ref()), fails: []error{engine.ErrUnsupported},
}

func (s *Server) queues(x *exchange, r *http.Request) error {
	after, n, err := wire.ParseQueuesQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	all, next, err := s.c.Queues(r.Context(), after, n)
	if x.token != nil && err == nil {
		all, next, err = s.visible(x, r, all, next, max(cmp.Or(n, len(all)), 1))
	}
	if err != nil {
		return err
	}
	return respond(x, wire.QueuePage, &wire.Queues{Queues: all, Next: next})
}

// visible returns a page of n queues that the token may see. It takes them from page, a page
// of all queues, and reads further pages as needed.
func (s *Server) visible(x *exchange, r *http.Request, page []tarry.QueueInfo, next string, n int) (all []tarry.QueueInfo, last string, err error) {
	for {
		for i := range page {
			switch {
			case !x.token.May(access.Read, page[i].Queue):
			case len(all) == n: // there is another
				return all, all[n-1].Queue, nil
			default:
				all = append(all, page[i])
			}
		}
		if next == "" {
			return all, "", nil
		}
		if page, next, err = s.c.Queues(r.Context(), next, engine.MaxPage); err != nil {
			return nil, "", err
		}
	}
}

var callQueue = &call{
	id: "getQueue", group: groupQueue, does: "Tell what a queue holds",
	answers: ok("What it holds.", wire.QueueHolds.Ref()), fails: []error{engine.ErrUnsupported},
}

func (s *Server) queue(x *exchange, r *http.Request) error {
	info, err := s.c.Queue(r.Context(), x.path.Queue())
	if err != nil {
		return err
	}
	return respond(x, wire.QueueHolds, &info)
}

// defaultPage is how many messages a page has if the request does not say.
const defaultPage = 100

// listed is the order of states in a list that asks for no state.
var listed = []engine.State{engine.Ready, engine.Leased, engine.Scheduled, engine.Dead}

var callList = &call{
	id: "listMessages", group: groupQueue, does: "List the messages of a queue", exact: true,
	query: wire.ListParameters, answers: ok("A page of messages.", wire.MessagePage.Ref()), fails: []error{engine.ErrUnsupported},
}

func (s *Server) list(x *exchange, r *http.Request) error {
	q, chosen, err := wire.ParseListQuery(x.path.Queue(), r.URL.RawQuery)
	if err != nil {
		return err
	}
	if chosen == (wire.Chosen{}) {
		return s.answerPage(x, r, s.pages, q.Body, func(b []byte, how wire.Bodies) ([]byte, error) {
			page, err := listStates(r.Context(), q, s.c.ListPage, func() bool { return false })
			return wire.AppendPage(b, &page, how), err
		})
	}
	return s.answerPage(x, r, s.searches, q.Body, func(b []byte, how wire.Bodies) ([]byte, error) {
		search := s.newSearch(chosen)
		page, err := listStates(r.Context(), q, search.page, search.over)
		return wire.AppendFound(b, &page, search.read, how), err
	})
}

// answerPage answers with a page of messages that write appends in one of some turns.
func (s *Server) answerPage(x *exchange, r *http.Request, in turns, bodies bool, write func(b []byte, how wire.Bodies) ([]byte, error)) error {
	return in.answer(x, r, func(b []byte) ([]byte, error) {
		if !bodies {
			return write(b, wire.NoBodies)
		}
		// Memory while the page is made: the messages, and the answer as it grows.
		making := min(3*engine.AnswerBytes, s.cfg.MaxBuffered/2)
		if err := x.take(making); err != nil {
			return nil, err
		}
		defer x.give(making)
		return write(b, wantBodies(r))
	})
}

// listStates lists one state or, if none is given, one after another until over. Then its
// cursor is the state, a colon, and the cursor within that state.
func listStates(ctx context.Context, q engine.ListQuery, list func(context.Context, engine.ListQuery) (engine.Page, error), over func() bool) (engine.Page, error) {
	if q.State != engine.Gone {
		return list(ctx, q)
	}
	at := 0
	if q.After != "" {
		name, after, ok := strings.Cut(q.After, ":")
		state, err := engine.ParseState(name)
		if at = slices.Index(listed, state); !ok || err != nil || at < 0 {
			return engine.Page{}, wire.Wrong("after: must be the next of an earlier page")
		}
		q.After = after
	}
	q.Limit = cmp.Or(q.Limit, defaultPage)
	var all engine.Page
	for ; at < len(listed); at++ {
		q.State = listed[at]
		p, err := list(ctx, q)
		if err != nil {
			return engine.Page{}, err
		}
		all.Messages = append(all.Messages, p.Messages...)
		if q.Limit -= len(p.Messages); p.Next != "" {
			all.Next = q.State.String() + ":" + p.Next
			return all, nil
		}
		q.After = ""
		if q.Limit == 0 || over() {
			if at+1 < len(listed) {
				all.Next = listed[at+1].String() + ":"
			}
			return all, nil
		}
	}
	return all, nil
}

var callForecast = &call{
	id: "forecastQueue", group: groupQueue, does: "Tell how many messages fall due when",
	query: wire.ForecastParameters, answers: ok("The forecast.", wire.ForecastAnswer.Ref()), fails: []error{engine.ErrUnsupported},
}

func (s *Server) forecast(x *exchange, r *http.Request) error {
	step, span, err := wire.ParseForecastQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	f, err := s.c.Forecast(r.Context(), x.path.Queue(), step, span)
	if err != nil {
		return err
	}
	return respond(x, wire.ForecastAnswer, &wire.Forecast{Step: step, Forecast: f})
}
