package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server"
)

func (p *Program) statusCommand() *cobra.Command {
	late, ready := server.LateAfter, false
	cmd := p.client(showEmpty, &cobra.Command{
		Use:   "status",
		Short: "Show health, backlog, problems and their remedies",
		Long: `Status shows the server or store, the counts of its queues, and problems with their
remedies: a store that is not ready or damaged, late messages, queues without workers,
paused queues with due messages, messages that died recently. For a server it also shows
how late messages were in the last 15 minutes: p50, p99 and the worst.

The exit code is 1 if there are problems, and 5 if there is no answer.

With --ready it only asks a server whether it is ready, as probes do. That needs no token
and does not wait for the store.`,
		Example: "  tarry status\n  tarry status --store disk:tarry-data\n  tarry status --json --late 5s\n  tarry status --ready",
		Args:    exactly(),
	}, func(ctx context.Context, c *tarry.Client, _ *cobra.Command, _ []string) error {
		w, err := p.watched(c)
		if err != nil {
			return err
		}
		s := status{watched: w, Counts: c.Capabilities().Count, overview: overview{late: late, now: p.Now()}}
		if err := s.ask(ctx, c); err != nil {
			return err
		}
		o := p.printer()
		s.print(o)
		if err := o.flush(); err != nil {
			return err
		}
		if n := len(s.problems); n > 0 {
			return failedf(nil, "each is shown with what to do", "there %s %s", isAre(n), counted(n, "problem"))
		}
		return nil
	})
	whole := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if ready {
			return p.askReady(cmd.Context())
		}
		return whole(cmd, args)
	}
	cmd.Flags().Var(durationFlag(&late), "late", "messages that are ready for longer are late")
	cmd.Flags().BoolVar(&ready, "ready", false, "only ask whether the server is ready")
	return cmd
}

// askReady only asks a server for /readyz.
func (p *Program) askReady(ctx context.Context) error {
	where, err := p.url()
	if err != nil {
		return err
	}
	u, err := url.Parse(where)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return usagef("give a --server, or leave --ready out", "--ready asks a server, and a store is given")
	}
	ctx, cancel := withTimeout(ctx, p.target.timeout)
	defer cancel()
	if err := httpengine.Ready(ctx, u, nil); err != nil {
		if e, ok := errors.AsType[*engine.Error](err); ok {
			e.Op = "status"
		}
		return err
	}
	return p.show(map[string]bool{"ready": true}, "ready")
}

const (
	// lateSpan is the recent span for which lateness is shown.
	lateSpan = 15 * time.Minute
	// shownQueues is how many queues fit on one screen.
	shownQueues = 20
)

// watched names the server or store that a command looks at.
type watched struct {
	Server  string `json:"server,omitempty"`
	Store   string `json:"store,omitempty"`
	Version string `json:"version"`
	Engine  string `json:"engine"`
}

func (p *Program) watched(c *tarry.Client) (watched, error) {
	where, err := p.url()
	w := watched{Store: bare(where), Version: readBuild().Version, Engine: c.Capabilities().Name}
	if e, ok := c.Engine().(*httpengine.Engine); ok {
		w.Server, w.Store, w.Version = w.Store, "", e.Version()
	}
	return w, err
}

func (w watched) String() string {
	name := "server " + w.Server
	if w.Store != "" {
		name = "store " + w.Store
	}
	return fmt.Sprintf("tarry %s, %s, engine %s", w.Version, name, w.Engine)
}

// holds says how many messages there are in each state.
func holds(q *tarry.QueueInfo) string {
	return fmt.Sprintf("%d scheduled, %d ready, %d leased, %d dead", q.Scheduled, q.Ready, q.Leased, q.Dead)
}

// status is the state at one moment, as --json prints it.
type status struct {
	watched
	overview
	Ready      bool        `json:"ready"`
	Counts     bool        `json:"counts"` // the engine can count messages
	Scheduled  int64       `json:"scheduled"`
	ReadyNow   int64       `json:"ready_messages"`
	Leased     int64       `json:"leased"`
	Dead       int64       `json:"dead"`
	NextDue    wire.Time   `json:"next_due"`
	Oldest     wire.Time   `json:"oldest_ready"`
	LateBySecs float64     `json:"late_seconds"` // how long the oldest has been ready
	Trends     bool        `json:"trends"`       // the server keeps trends, and so lateness
	Queues     []*queueRow `json:"queues"`
	Problems   []problem   `json:"problems"`

	Beanstalk *wire.BeanstalkClients `json:"beanstalk,omitempty"` // of the server; nil: it serves none
	Intakes   []wire.Intake          `json:"intakes,omitempty"`   // of the server
}

// ask asks for everything. If the store is not ready, that is one problem among others, and
// ask still finds as much as it can.
func (s *status) ask(ctx context.Context, c *tarry.Client) (err error) {
	if s.Ready, err = s.readiness(ctx, c); err != nil {
		return err
	}
	if e, ok := c.Engine().(*httpengine.Engine); ok {
		told, err := fetchJSON[wire.Server](ctx, e, "/v1/info", "")
		if err != nil {
			return err
		}
		s.Beanstalk = told.Beanstalk
		all, err := fetchJSON[wire.Intakes](ctx, e, "/v1/intakes", "")
		if err != nil && !errors.Is(err, tarry.ErrNotFound) { // an older server has no such path
			return err
		}
		s.Intakes = all.Intakes
	}
	if !s.Counts {
		if err := s.find(ctx, c); s.Ready {
			return err
		}
		return nil
	}
	if err := s.look(ctx, c, lateSpan, lateSpan, math.MaxInt); err != nil && s.Ready {
		return err
	}
	// The queues with the most problems come first.
	slices.SortStableFunc(s.rows, func(a, b *queueRow) int {
		return cmp.Or(cmp.Compare(b.bad, a.bad), cmp.Compare(b.Ready, a.Ready), cmp.Compare(a.Queue, b.Queue))
	})
	return nil
}

// fill sets what is printed from the overview.
func (s *status) fill() {
	s.Scheduled, s.ReadyNow, s.Leased, s.Dead = s.sum.Scheduled, s.sum.Ready, s.sum.Leased, s.sum.Dead
	s.Trends, s.Queues, s.Problems = s.trends, append([]*queueRow{}, s.rows...), append([]problem{}, s.problems...)
	if s.next != nil {
		s.NextDue.Time = s.next.NextDue
	}
	if s.oldest != nil {
		s.Oldest.Time, s.LateBySecs = s.oldest.OldestReady, max(0, s.now.Sub(s.oldest.OldestReady)).Seconds()
	}
}

// MarshalJSON returns the queue as the API writes it, and the lateness if it is known.
func (r *queueRow) MarshalJSON() ([]byte, error) {
	b := wire.QueueHolds.Append(nil, &r.QueueInfo)
	if r.late.Count == 0 {
		return b, nil
	}
	late, err := json.Marshal(r.late)
	return append(append(append(b[:len(b)-1], `,"lateness":`...), late...), '}'), err
}

func (s *status) print(o *printer) {
	if o.p.json {
		s.fill()
		o.object(s)
		return
	}
	state := "ready"
	if !s.Ready {
		state = "not ready"
	}
	o.say("%s: %s", s.watched.String(), state)
	printProblems(o, &s.overview)
	if b := s.Beanstalk; b != nil {
		o.say("clients of beanstalkd: %s, %d waiting for a job", counted(b.Connections, "connection"), b.Waiting)
	}
	for _, i := range s.Intakes {
		o.say("intake %s into %s: %s, %d taken, %d pushed, %s, %d refused, %d unacked",
			i.Name, i.Queue, i.State, i.Taken, i.Pushed, counted(i.Doubles, "double"), i.Refused, i.Unacked)
	}
	if !s.Counts {
		o.say("what the queues hold this engine cannot tell")
		return
	}
	o.say("%s", s.sums())
	if r := s.oldest; r != nil {
		o.say("oldest ready: %s, of %s", away(r.OldestReady, s.now), r.Queue)
	}
	if r := s.next; r != nil {
		o.say("next due: %s, of %s", away(r.NextDue, s.now), r.Queue)
	}
	if len(s.rows) == 0 {
		return
	}
	o.say("")
	head := []any{"QUEUE", "SCHEDULED", "READY", "LEASED", "DEAD", "NEXT DUE", "OLDEST READY", "PAUSED"}
	late := slices.ContainsFunc(s.rows, func(r *queueRow) bool { return r.late.Count > 0 })
	if late {
		head = append(head, "LATE P50", "P99", "WORST")
	}
	o.head(head...)
	for _, r := range s.rows[:min(len(s.rows), shownQueues)] {
		cells := []any{r.Queue, r.Scheduled, r.Ready, r.Leased, r.Dead,
			orDash(away(r.NextDue, s.now)), orDash(away(r.OldestReady, s.now)), pausedText(&r.QueueInfo)}
		if late {
			cells = append(cells, lateBy(r.late.P50).text, lateBy(r.late.P99).text, lateBy(r.late.Max).text)
		}
		o.row(nil, cells...)
	}
	if n := len(s.rows) - shownQueues; n > 0 {
		o.say("and %s; tarry queues shows all", counted(n, "queue"))
	}
}

// bare returns a URL without what may be secret: user, password and options.
func bare(where string) string {
	u, err := url.Parse(where)
	if err != nil {
		return "?"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// lasting formats a duration for people, in whole seconds.
func lasting(d time.Duration) string { return tarry.FormatDuration(d.Round(time.Second)) }
