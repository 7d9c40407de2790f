package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

var callQueues = &call{
	id: "listQueues", group: groupQueue, does: "List the queues",
	query: wire.PageQuery.Shape, answers: ok("A page of queues.", wire.QueuePage.Ref()), fails: []error{engine.ErrUnsupported},
}

func (s *Server) queues(x *exchange, r *http.Request) error {
	asked, err := wire.PageQuery.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	all, next, err := s.c.Queues(r.Context(), asked.After, asked.Limit)
	if x.token != nil && err == nil {
		all, next, err = s.visible(x, r, all, next, max(cmp.Or(asked.Limit, len(all)), 1))
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
	query: wire.ListQuery.Shape, answers: ok("A page of messages.", wire.MessagePage.Ref()), fails: []error{engine.ErrUnsupported},
}

func (s *Server) list(x *exchange, r *http.Request) error {
	q, err := wire.ListQuery.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	q.Queue = x.path.Queue()
	if q.Chosen == (wire.Chosen{}) {
		return s.answerPage(x, r, s.pages, q.Body, func(b []byte, how wire.Bodies) ([]byte, error) {
			page, err := listStates(r.Context(), q.ListQuery, s.c.ListPage, func() bool { return false })
			return wire.AppendPage(b, &page, how), err
		})
	}
	return s.answerPage(x, r, s.searches, q.Body, func(b []byte, how wire.Bodies) ([]byte, error) {
		search := s.newSearch(q.Chosen)
		page, err := listStates(r.Context(), q.ListQuery, search.page, search.over)
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
	query: wire.ForecastQuery.Shape, answers: ok("The forecast.", wire.ForecastAnswer.Ref()), fails: []error{engine.ErrUnsupported},
}

func (s *Server) forecast(x *exchange, r *http.Request) error {
	asked, err := wire.ForecastQuery.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	f, err := s.c.Forecast(r.Context(), x.path.Queue(), asked.Step, asked.Span)
	if err != nil {
		return err
	}
	return respond(x, wire.ForecastAnswer, &wire.Forecast{Step: asked.Step, Forecast: f})
}

var callSettings = &call{
	id: "getSettings", group: groupQueue, does: "Get the settings of a queue",
	answers: ok("The settings. Those of a queue that was never configured are empty, with the revision 0.", wire.Configured.Ref()),
	fails:   []error{engine.ErrUnsupported},
}

var callConfigure = &call{
	id: "putSettings", group: groupQueue, does: "Store the settings of a queue",
	request: wire.Configuring.Shape, answers: ok("The settings, with their new revision.", wire.Configured.Ref()),
	fails:   []error{engine.ErrStale, engine.ErrNoSpace, engine.ErrUnsupported},
	example: json.RawMessage(`{"settings":{"max_attempts":5,"dead_keep":"7d","in_flight":10,"rate":100},"revision":"0"}`),
}

// settings answers with the settings of a queue.
func (s *Server) settings(x *exchange, r *http.Request) error {
	set, revision, err := s.c.Settings(r.Context(), x.path.Queue())
	if err != nil {
		return err
	}
	return respond(x, wire.Configured, &wire.Settings{Settings: set, Revision: revision})
}

// configure replaces all settings of a queue.
func (s *Server) configure(x *exchange, r *http.Request) error {
	set, err := decode(x, r, wire.Configuring)
	if err != nil {
		return err
	}
	set.Revision, err = s.c.Configure(r.Context(), x.path.Queue(), set.Settings, set.Revision)
	x.note("revision", set.Revision)
	if err != nil {
		return err
	}
	return respond(x, wire.Configured, &set)
}

// operateFails are the errors of calls that operate a queue.
var operateFails = []error{engine.ErrNoSpace, engine.ErrUnsupported}

var callPause = &call{
	id: "pauseQueue", group: groupQueue, does: "Stop leasing and claiming of a queue",
	request: wire.Pausing.Shape, answers: ok("It is paused.", wire.Counted.Ref()), fails: operateFails,
	example: json.RawMessage(`{"for":"10m"}`),
}

// pause stops the leasing of a queue: for the time asked, or until it is resumed.
func (s *Server) pause(x *exchange, r *http.Request) error {
	d, err := decode(x, r, wire.Pausing)
	if err == nil {
		err = s.c.Pause(r.Context(), x.path.Queue(), d)
	}
	return s.counted(x, 1, err)
}

var callResume = &call{
	id: "resumeQueue", group: groupQueue, does: "Go on with a queue that was paused",
	request: wire.None.Shape, answers: ok("It goes on.", wire.Counted.Ref()), fails: operateFails,
	example: json.RawMessage(`{}`),
}

func (s *Server) resume(x *exchange, r *http.Request) error {
	_, err := decode(x, r, wire.None)
	if err == nil {
		err = s.c.Resume(r.Context(), x.path.Queue())
	}
	return s.counted(x, 1, err)
}

var callPurge = &call{
	id: "purgeQueue", group: groupQueue, does: "Remove what is scheduled and ready in a queue",
	more:    "When it fails midway the header " + wire.CountHeader + " tells how many are gone.",
	request: wire.Purging.Shape, answers: ok("How many are gone.", wire.Counted.Ref()), fails: operateFails,
	example: json.RawMessage(`{"dead":true}`),
}

func (s *Server) purge(x *exchange, r *http.Request) error {
	also, err := decode(x, r, wire.Purging)
	if err != nil {
		return err
	}
	n, err := s.c.Purge(r.Context(), x.path.Queue(), also)
	return s.counted(x, n, x.midway(n, err, "%d messages are gone already; purge again for the rest"))
}

// midway returns the error of a request that failed after it had changed n messages. Its hint
// and a header say how many.
func (x *exchange) midway(n int64, err error, hint string) error {
	if err == nil || n == 0 {
		return err
	}
	f := *wire.Shown(err)
	f.Hint = fmt.Sprintf(hint, n)
	x.Header().Set(wire.CountHeader, strconv.FormatInt(n, 10))
	return &f
}
