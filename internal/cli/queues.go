package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server"
)

func (p *Program) queuesCommand() *cobra.Command {
	return p.client(showEmpty, &cobra.Command{
		Use:   "queues [QUEUE…]",
		Short: "Count the messages of each queue by state",
		Long: `Queues shows the queues named, or all that hold messages, are paused or have settings.
Finished counts the finished messages that are listed (in JSON: history), remembered the keys
of finished messages that are remembered (in JSON: finished).`,
		Example: "  tarry queues\n  tarry queues order.unpaid --json",
		Args:    cobra.ArbitraryArgs,
	}, func(ctx context.Context, c *tarry.Client, _ *cobra.Command, args []string) error {
		o := p.printer()
		o.head("QUEUE", "SCHEDULED", "READY", "LEASED", "DEAD", "FINISHED", "REMEMBERED", "NEXT DUE", "OLDEST READY", "PAUSED")
		for _, name := range args {
			q, err := c.Queue(ctx, name)
			if err != nil {
				return err
			}
			p.showQueue(o, q)
		}
		if len(args) > 0 {
			return o.flush()
		}
		for q, err := range c.AllQueues(ctx) {
			if err != nil {
				return err
			}
			p.showQueue(o, q)
			if err := o.page(); err != nil {
				return err
			}
		}
		return o.flush()
	})
}

func (p *Program) showQueue(o *printer, q tarry.QueueInfo) {
	o.row(asAPI(func(b []byte) []byte { return wire.QueueHolds.Append(b, &q) }), q.Queue, q.Scheduled, q.Ready, q.Leased, q.Dead, q.History, q.Finished,
		orDash(away(q.NextDue, p.Now())), orDash(away(q.OldestReady, p.Now())), pausedText(&q))
}

func pausedText(q *tarry.QueueInfo) string {
	switch {
	case q.Paused && q.PausedUntil.IsZero():
		return "until resumed"
	case q.Paused:
		return "until " + formatTime(q.PausedUntil)
	}
	return "-"
}

func (p *Program) pauseCommand() *cobra.Command {
	var d time.Duration
	cmd := p.client(refuseIt, &cobra.Command{
		Use:     "pause QUEUE",
		Short:   "Stop leasing messages of a queue for a while",
		Long:    `Pause stops the leasing of a queue. Pushes, cancels and messages that are already leased are not affected.`,
		Example: "  tarry pause order.unpaid --for 10m",
		Args:    exactly("QUEUE"),
	}, func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("for") && d == 0 {
			return usagef("leave --for away to pause until tarry resume", "--for is 0")
		}
		if err := c.Pause(ctx, args[0], d); err != nil {
			return err
		}
		text := "until tarry resume " + args[0]
		object := map[string]string{"queue": args[0], "outcome": "paused"}
		if d > 0 {
			text = "for " + tarry.FormatDuration(d)
			object["for"] = tarry.FormatDuration(d)
		}
		return p.show(object, "paused %s %s", args[0], text)
	})
	cmd.Flags().Var(durationFlag(&d), "for", "how long (default: until resumed)")
	return cmd
}

func (p *Program) resumeCommand() *cobra.Command {
	return p.client(refuseIt, &cobra.Command{
		Use:     "resume QUEUE",
		Short:   "End a queue's pause",
		Example: "  tarry resume order.unpaid",
		Args:    exactly("QUEUE"),
	}, func(ctx context.Context, c *tarry.Client, _ *cobra.Command, args []string) error {
		if err := c.Resume(ctx, args[0]); err != nil {
			return err
		}
		return p.show(map[string]string{"queue": args[0], "outcome": "resumed"}, "resumed %s", args[0])
	})
}

func (p *Program) purgeCommand() *cobra.Command {
	var (
		filter         filterFlags
		dead, finished bool
	)
	cmd := p.client(refuseIt, &cobra.Command{
		Use:   "purge QUEUE",
		Short: "Remove a queue's scheduled and ready messages",
		Long: `Purge removes the messages that are scheduled or ready when it begins. With --dead it also
removes dead messages, with --finished remembered keys and the finished messages listed;
leased messages stay. The keys of removed messages are free again. With flags that choose messages it cancels those instead,
the earliest due first; their keys are remembered if their pushes asked for that. It asks
first, or needs --yes.`,
		Example: `  tarry purge order.unpaid --yes
  tarry purge order.unpaid --due-before 1h --key-prefix test-`,
		Args: exactly("QUEUE"),
	}, func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		if filter.given(cmd) || filter.Limit != 0 {
			if dead || finished {
				return usagef("tarry dead drop chooses among dead messages", "--dead and --finished take all there are")
			}
			return p.sweepAndShow(cmd, c, args[0], sweep{do: "cancel", done: "cancelled", flags: &filter, states: thatWait, run: c.CancelWhere})
		}
		q, err := c.Queue(ctx, args[0])
		if err != nil {
			return err
		}
		n, also := q.Scheduled+q.Ready, tarry.PurgeAlso(0)
		if dead {
			n, also = n+q.Dead, also|tarry.PurgeDead
		}
		if finished {
			n, also = n+q.Finished+q.History, also|tarry.PurgeFinished
		}
		if err := p.confirm(cmd.Context(), fmt.Sprintf("remove %s of %s for good", counted(n, "message"), args[0])); err != nil {
			return err
		}
		// No timeout: a purge may take long, and a person may think for long.
		n, err = c.Purge(cmd.Context(), args[0], also)
		if err != nil {
			return midway(cmd.Context(), err, n, "removed")
		}
		return p.showCount("purged", args[0], n, 0)
	})
	filter.due(p, cmd)
	filter.limit(cmd)
	cmd.Flags().BoolVar(&dead, "dead", false, "dead messages too")
	cmd.Flags().BoolVar(&finished, "finished", false, "remembered keys and listed finished messages too")
	p.yesFlag(cmd)
	return cmd
}

func (p *Program) forecastCommand() *cobra.Command {
	step, span := time.Hour, 48*time.Hour
	cmd := p.client(showEmpty, &cobra.Command{
		Use:   "forecast QUEUE",
		Short: "Show how many messages fall due when",
		Long: `Forecast counts the scheduled and ready messages by due time, step by step from this minute
on. Messages due before this minute are counted as overdue. The table leaves out empty
steps; --json has them all.`,
		Example: "  tarry forecast order.unpaid --step 10m --span 6h",
		Args:    exactly("QUEUE"),
	}, func(ctx context.Context, c *tarry.Client, _ *cobra.Command, args []string) error {
		f, err := c.Forecast(ctx, args[0], step, span)
		if err != nil {
			return err
		}
		total, peak := sumOf(f.Buckets)
		most := max(peak.Count, f.Overdue)
		o := p.printer()
		o.head("FROM", "COUNT")
		if p.json || f.Overdue > 0 {
			o.row(asAPI(func(to []byte) []byte { return fmt.Appendf(to, `{"overdue":%d}`, f.Overdue) }), "overdue", f.Overdue, bar(f.Overdue, most))
		}
		for _, b := range f.Buckets {
			if !p.json && b.Count == 0 {
				continue
			}
			o.row(asAPI(func(to []byte) []byte { return wire.Bucket.Append(to, &b) }), formatTime(b.From), b.Count, bar(b.Count, most))
		}
		o.say("%d within %s from this minute on; %d overdue", total, tarry.FormatDuration(span), f.Overdue)
		return o.flush()
	})
	cmd.Flags().Var(durationFlag(&step), "step", "length of a step, whole minutes")
	cmd.Flags().Var(durationFlag(&span), "span", "how far to look ahead, whole steps")
	return cmd
}

// bar draws n of most as up to 40 characters.
func bar(n, most int64) string {
	return strings.Repeat("#", int((n*40+most-1)/max(most, 1)))
}

// sumOf returns the sum of all steps of a forecast, and the step with the most messages.
func sumOf(buckets []tarry.Bucket) (sum int64, most tarry.Bucket) {
	for _, b := range buckets {
		if sum += b.Count; b.Count > most.Count {
			most = b
		}
	}
	return sum, most
}

func (p *Program) workersCommand() *cobra.Command {
	return p.client(showEmpty, &cobra.Command{
		Use:   "workers",
		Short: "List the workers and what they do",
		Long: `Workers lists who leased from the server in the last 5 minutes, or holds leases. Handled
counts acks, failed retries and buries. A worker "elsewhere" holds leases that another server
of the same store gave it: only its name and leases are known. With --store only workers
that hold leases are listed.`,
		Example: "  tarry workers\n  tarry workers --json",
		Args:    exactly(),
	}, func(ctx context.Context, c *tarry.Client, _ *cobra.Command, _ []string) error {
		all, err := workersOf(ctx, c)
		if err != nil {
			return err
		}
		o := p.printer()
		o.head("NAME", "ADDRESS", "LEASED", "HANDLED", "FAILED", "SINCE", "SEEN", "VERSION", "QUEUES")
		for _, w := range all.Workers {
			queues, at, handled, failed := strings.Join(w.Queues, " "), orDash(w.Address), fmt.Sprint(w.Handled), fmt.Sprint(w.Failed)
			if w.More {
				queues += " …"
			}
			if w.Elsewhere {
				at = "elsewhere"
			}
			if w.Since.IsZero() {
				handled, failed = "-", "-"
			}
			o.row(w, orDash(w.Name), at, w.Leased, handled, failed,
				orDash(away(w.Since.Time, p.Now())), orDash(away(w.Seen.Time, p.Now())), orDash(w.Version), queues)
		}
		if err := o.flush(); err != nil {
			return err
		}
		if all.More {
			fmt.Fprintln(p.Stderr, "there may be more")
		}
		return nil
	})
}

// workersOf asks the server for its workers, or finds those that hold leases in a directly
// opened store.
func workersOf(ctx context.Context, c *tarry.Client) (all wire.Workers, err error) {
	if e, ok := c.Engine().(*httpengine.Engine); ok {
		return fetchJSON[wire.Workers](ctx, e, "/v1/workers", "")
	}
	all.Workers, all.More, err = server.WorkersOf(ctx, c)
	return all, err
}

// fetchJSON asks a server for what engines have no call for.
func fetchJSON[T any](ctx context.Context, e *httpengine.Engine, path, query string) (v T, err error) {
	answer, err := e.Fetch(ctx, path, query)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(answer, &v); err != nil {
		return v, &engine.Error{Op: "read", Err: engine.ErrUnavailable, Hint: "what the server answers to GET " + path + " makes no sense: " + err.Error()}
	}
	return v, nil
}
