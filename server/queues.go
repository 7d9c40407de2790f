package server

import (
	"cmp"
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
	return told(x, wire.QueuePage, &wire.Queues{Queues: all, Next: next})
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
	return told(x, wire.QueueHolds, &info)
}

// listed is the order of states in a list that asks for no state.
var listed = []engine.State{engine.Ready, engine.Leased, engine.Scheduled, engine.Dead}

var callList = &call{
	id: "listMessages", group: groupQueue, does: "List the messages of a queue", exact: true,
	query: wire.ListParameters, answers: ok("A page of messages.", wire.MessagePage.Ref()), fails: []error{engine.ErrUnsupported},
}

func (s *Server) list(x *exchange, r *http.Request) error {
	q, err := wire.ParseListQuery(x.path.Queue(), r.URL.RawQuery)
	if err != nil {
		return err
	}
	how := wire.NoBodies
	if q.Body {
		how = wantBodies(r)
	}
	a := newAnswer()
	defer a.free()
	if err := s.page(x, r, a, q, how); err != nil {
		return err
	}
	return s.send(x, a, http.StatusOK)
}

// page writes a page of messages of one state, or of all states when none is given. It waits
// for its turn.
func (s *Server) page(x *exchange, r *http.Request, a *answer, q engine.ListQuery, how wire.Bodies) error {
	return s.pages.take(r.Context(), func() (err error) {
		if q.Body { // memory while the page is made: the messages, and the answer as it grows
			making := min(3*engine.AnswerBytes, s.cfg.MaxBuffered/2)
			if err := x.take(making); err != nil {
				return err
			}
			defer x.give(making)
		}
		var page engine.Page
		if q.State == engine.Gone {
			page, err = s.listAll(r, q)
		} else {
			page, err = s.c.ListPage(r.Context(), q)
		}
		if err != nil {
			return err
		}
		a.b = wire.AppendPage(a.b, &page, how)
		return nil
	})
}

// listAll lists one state after another. Its cursor is the state, a colon, and the cursor
// within that state.
func (s *Server) listAll(r *http.Request, q engine.ListQuery) (engine.Page, error) {
	at := 0
	if q.After != "" {
		name, after, ok := strings.Cut(q.After, ":")
		state, err := engine.ParseState(name)
		if at = slices.Index(listed, state); !ok || err != nil || at < 0 {
			return engine.Page{}, wire.Wrong("after: is not the next of a page before")
		}
		q.After = after
	}
	if q.Limit == 0 {
		q.Limit = 100
	}
	var all engine.Page
	for ; at < len(listed); at++ {
		q.State = listed[at]
		p, err := s.c.ListPage(r.Context(), q)
		if err != nil {
			return engine.Page{}, err
		}
		all.Messages = append(all.Messages, p.Messages...)
		if q.Limit -= len(p.Messages); p.Next != "" {
			all.Next = q.State.String() + ":" + p.Next
			return all, nil
		}
		q.After = ""
		if q.Limit == 0 {
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
	return told(x, wire.ForecastAnswer, &wire.Forecast{Step: step, Forecast: f})
}
