package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/internal/wire"
)

func (p *Program) statusCommand() *cobra.Command {
	late, ready := tardy, false
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
		s := status{watched: w, finder: finder{late: late, now: p.Now(), Problems: []problem{}}, Queues: []queueStatus{}}
		if err := s.look(ctx, c); err != nil {
			return err
		}
		o := p.printer()
		s.print(o)
		if err := o.flush(); err != nil {
			return err
		}
		if n := len(s.Problems); n > 0 {
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
	cmd.Flags().Var((*durationValue)(&late), "late", "messages that are ready for longer are late")
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
		return startHint(err)
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
func holds(scheduled, ready, leased, dead int64) string {
	return fmt.Sprintf("%d scheduled, %d ready, %d leased, %d dead", scheduled, ready, leased, dead)
}

// status is the state at one moment, and the JSON that --json prints.
type status struct {
	watched
	Ready      bool          `json:"ready"`
	Counts     bool          `json:"counts"` // the engine can count messages
	Scheduled  int64         `json:"scheduled"`
	ReadyNow   int64         `json:"ready_messages"`
	Leased     int64         `json:"leased"`
	Dead       int64         `json:"dead"`
	NextDue    wire.Time     `json:"next_due"`
	Oldest     wire.Time     `json:"oldest_ready"`
	LateBySecs float64       `json:"late_seconds"` // how long the oldest has been ready
	Trends     bool          `json:"trends"`       // the server keeps trends, and so lateness
	Queues     []queueStatus `json:"queues"`
	finder

	nextQueue, oldestQueue string
}

// queueStatus is a queue and how many problems it has.
type queueStatus struct {
	engine.QueueInfo
	lateness *wire.Times // in the last minutes; nil: unknown, or no message was handed out
	bad      int         // number of its problems
}

// MarshalJSON returns the queue as the API writes it, and the lateness.
func (q queueStatus) MarshalJSON() ([]byte, error) {
	b := wire.AppendQueue(nil, &q.QueueInfo)
	if q.lateness == nil {
		return b, nil
	}
	late, err := json.Marshal(q.lateness)
	return append(append(append(b[:len(b)-1], `,"lateness":`...), late...), '}'), err
}

// look asks for everything. If the store is not ready, that is one problem among others, and
// look still finds as much as it can.
func (s *status) look(ctx context.Context, c *tarry.Client) error {
	ready, err := s.readiness(ctx, c)
	if err != nil {
		return err
	}
	s.Ready = ready
	caps := c.Capabilities()
	if s.Counts = caps.Count; !s.Counts {
		return nil
	}
	trends, kept, err := trendsOf(ctx, c, lateSpan, lateSpan)
	if err != nil && s.Ready {
		return err
	}
	s.Trends = kept
	late := make(map[string]*wire.Times)
	for name, t := range trends {
		if latenessKnown(&t.Lateness) {
			late[name] = &t.Lateness
		}
	}
	listed := make(map[string]bool)
	for q, err := range c.AllQueues(ctx) {
		if err != nil && !s.Ready {
			return nil // that is a problem already
		}
		if err != nil {
			return err
		}
		listed[q.Queue] = true
		if err := s.queue(ctx, c, &caps, q, late[q.Queue]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(late)) { // queues that no longer hold anything
		if !listed[name] {
			if err := s.queue(ctx, c, &caps, tarry.QueueInfo{Queue: name}, late[name]); err != nil {
				return err
			}
		}
	}
	s.store(c)
	s.sort()
	return nil
}

// sort puts the queues with the most problems first.
func (s *status) sort() {
	slices.SortStableFunc(s.Queues, func(a, b queueStatus) int {
		return cmp.Or(cmp.Compare(b.bad, a.bad), cmp.Compare(b.Ready, a.Ready), cmp.Compare(a.Queue, b.Queue))
	})
}

// queue adds a queue and its problems.
func (s *status) queue(ctx context.Context, c *tarry.Client, caps *tarry.Capabilities, q tarry.QueueInfo, late *wire.Times) error {
	s.Scheduled, s.ReadyNow, s.Leased, s.Dead = s.Scheduled+q.Scheduled, s.ReadyNow+q.Ready, s.Leased+q.Leased, s.Dead+q.Dead
	if !q.NextDue.IsZero() && (s.NextDue.IsZero() || q.NextDue.Before(s.NextDue.Time)) {
		s.NextDue, s.nextQueue = wire.Time{Time: q.NextDue}, q.Queue
	}
	if !q.OldestReady.IsZero() && (s.Oldest.IsZero() || q.OldestReady.Before(s.Oldest.Time)) {
		s.Oldest, s.oldestQueue, s.LateBySecs = wire.Time{Time: q.OldestReady}, q.Queue, max(0, s.now.Sub(q.OldestReady)).Seconds()
	}
	n := len(s.Problems)
	s.backlog(q)
	if len(s.Problems) == n {
		s.wasLate(q.Queue, late, lateSpan)
	}
	if err := s.deaths(ctx, c, caps, q); err != nil {
		return err
	}
	s.Queues = append(s.Queues, queueStatus{q, late, len(s.Problems) - n})
	return nil
}

func (s *status) print(o *printer) {
	if o.p.json {
		o.object(s)
		return
	}
	state := "ready"
	if !s.Ready {
		state = "not ready"
	}
	o.say("%s: %s", s.watched.String(), state)
	printProblems(o, s.Problems)
	if !s.Counts {
		o.say("what the queues hold this engine cannot tell")
		return
	}
	o.say("%s: %s", counted(len(s.Queues), "queue"), holds(s.Scheduled, s.ReadyNow, s.Leased, s.Dead))
	if !s.Oldest.IsZero() {
		o.say("oldest ready: %s, of %s", away(s.Oldest.Time, s.now), s.oldestQueue)
	}
	if !s.NextDue.IsZero() {
		o.say("next due: %s, of %s", away(s.NextDue.Time, s.now), s.nextQueue)
	}
	if len(s.Queues) == 0 {
		return
	}
	o.say("")
	head := []any{"QUEUE", "SCHEDULED", "READY", "LEASED", "DEAD", "NEXT DUE", "OLDEST READY", "PAUSED"}
	late := slices.ContainsFunc(s.Queues, func(q queueStatus) bool { return q.lateness != nil })
	if late {
		head = append(head, "LATE P50", "P99", "WORST")
	}
	o.head(head...)
	for i := range s.Queues[:min(len(s.Queues), shownQueues)] {
		q := &s.Queues[i]
		cells := []any{q.Queue, q.Scheduled, q.Ready, q.Leased, q.Dead,
			orDash(away(q.NextDue, s.now)), orDash(away(q.OldestReady, s.now)), pausedText(&q.QueueInfo)}
		switch {
		case late && q.lateness != nil:
			cells = append(cells, brief(q.lateness.P50), brief(q.lateness.P99), brief(q.lateness.Max))
		case late:
			cells = append(cells, "-", "-", "-")
		}
		o.row(nil, cells...)
	}
	if n := len(s.Queues) - shownQueues; n > 0 {
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
