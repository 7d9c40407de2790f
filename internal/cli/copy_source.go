package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/cli/source"
)

func (p *Program) copyAsynqCommand() *cobra.Command {
	var byType bool
	cmd := p.sourceCommand(&cobra.Command{
		Use:   "asynq FROM TO [QUEUE…]",
		Short: "Copy the scheduled tasks of asynq",
		Long: `Copy pushes the tasks that asynq has scheduled or will retry, of all its queues or of those
named. FROM is the URL of its Redis. A task's id becomes the key, its payload the body, its
type the header asynq-type.`,
		Example: "  tarry copy asynq redis://127.0.0.1:6379/0 http://127.0.0.1:8277 --by-type --move",
		Args:    atLeast("FROM", "TO"),
	}, func(ctx context.Context, from *url.URL, queues []string) ([]source.Source, func(), error) {
		return source.Asynq(ctx, from, queues, byType)
	})
	cmd.Flags().BoolVar(&byType, "by-type", false, "to queues named as the types, with dots for colons, not as asynq's queues")
	return cmd
}

func (p *Program) copyZSetCommand() *cobra.Command {
	var z source.ZSet
	cmd := p.sourceCommand(&cobra.Command{
		Use:   "zset FROM TO QUEUE",
		Short: "Copy the members of a sorted set of Redis",
		Long: `Copy pushes the members of a sorted set, whose scores are due times. FROM is the URL of a
Redis. A member becomes body and key; one that cannot be a key has its SHA-256 for one.`,
		Example: `  tarry copy zset redis://127.0.0.1:6379/0 disk:tarry-data mail --set delayed --per-second 1000 --move
  tarry copy zset @redis.url disk:tarry-data mail --set delayed --per-second 1 --body 'mail:{}#text'`,
		Args: exactly("FROM", "TO", "QUEUE"),
	}, func(_ context.Context, from *url.URL, args []string) ([]source.Source, func(), error) {
		if z.Queue = args[0]; z.Set == "" || z.PerSecond <= 0 {
			return nil, nil, usagef("as in --set delayed --per-second 1000", "--set or --per-second is missing")
		}
		return z.Open(from)
	})
	flags := cmd.Flags()
	flags.StringVar(&z.Set, "set", "", "key of the sorted set")
	flags.Float64Var(&z.PerSecond, "per-second", 0, "what scores count in a second: 1 for seconds, 1000 for milliseconds")
	flags.StringVar(&z.Body, "body", "", "where the body is: KEY, or KEY#FIELD of a hash, with {} for the member (unset: the member)")
	return cmd
}

func (p *Program) copyTableCommand() *cobra.Command {
	var t source.Table
	cmd := p.sourceCommand(&cobra.Command{
		Use:   "table FROM TO QUEUE",
		Short: "Copy the rows of a table of PostgreSQL or MySQL",
		Long: `Copy pushes the rows of a table that wait. FROM is the URL of a PostgreSQL, MySQL or MariaDB.
A column may be any expression of SQL.`,
		Example: `  tarry copy table @database.url http://127.0.0.1:8277 mail --table timers --due run_at --body payload
  tarry copy table @database.url disk:tarry-data mail --table timers --due run_at --body payload \
    --where "status = 0" --mark "status = 9" --move`,
		Args: exactly("FROM", "TO", "QUEUE"),
	}, func(ctx context.Context, from *url.URL, args []string) ([]source.Source, func(), error) {
		if t.Queue = args[0]; t.Table == "" || t.Due == "" || t.Body == "" {
			return nil, nil, usagef("as in --table timers --due run_at --body payload", "--table, --due or --body is missing")
		}
		return t.Open(ctx, from)
	})
	flags := cmd.Flags()
	flags.StringVar(&t.Table, "table", "", "the table")
	flags.StringVar(&t.ID, "id", "id", "column that is unique")
	flags.StringVar(&t.Due, "due", "", "column of the due time, UTC where it has no zone")
	flags.StringVar(&t.Body, "body", "", "column of the body")
	flags.StringVar(&t.Key, "key", "", "column of the key (unset: --id)")
	flags.StringVar(&t.Where, "where", "", "condition of rows that wait (unset: all)")
	flags.StringVar(&t.Mark, "mark", "", "what --move sets, as in \"status = 9\" (unset: it deletes the row)")
	return cmd
}

const (
	// pageWait bounds the time to push and remove a page, also of an interrupted copy: what
	// was pushed must not stay in FROM.
	pageWait = 30 * time.Second

	// copyRemember is how long TO knows a key after its message is gone, so that a copy made
	// again does not bring it back.
	copyRemember = 24 * time.Hour
)

const sourceText = `

Without --move stop first what handles FROM; nothing is removed there. With --move it may be
live: what is due within --margin is left to it, the rest is pushed and then removed, unless
it has changed meanwhile. A key that TO knows is kept: after a crash run the command again.`

// sourceOpener opens what FROM and the arguments after TO name.
type sourceOpener func(ctx context.Context, from *url.URL, args []string) (all []source.Source, done func(), err error)

// sourceCommand completes a command that copies from another system.
func (p *Program) sourceCommand(cmd *cobra.Command, open sourceOpener) *cobra.Command {
	c := &sourceCopier{p: p, margin: time.Minute}
	cmd.Long += sourceText
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.open(cmd.Context(), args, open) }
	flags := cmd.Flags()
	flags.BoolVar(&c.dryRun, "dry-run", false, "only count what would be copied, and change nothing")
	flags.BoolVar(&c.move, "move", false, "remove from FROM what was copied")
	flags.Var(durationFlag(&c.margin), "margin", "with --move, leave what is due sooner than this")
	p.tokenFlag(cmd)
	timeoutFlag(cmd, &p.target.timeout, defaultTimeout, "how long opening both may take; 0: no limit")
	p.jsonFlag(cmd, "print JSON, one object a queue, set or table")
	return cmd
}

// sourceCopier copies from another system.
type sourceCopier struct {
	p            *Program
	dryRun, move bool
	margin       time.Duration

	to      *tarry.Client
	note    *note
	refused int64
	err     error // the first of these
}

// sourceCopied is the result of copying a queue, a set or a table.
type sourceCopied struct {
	From    string `json:"from"`
	Copied  int64  `json:"copied"`
	Kept    int64  `json:"kept"`    // TO knew their keys
	Refused int64  `json:"refused"` // could not be copied
	Gone    int64  `json:"gone"`    // taken or changed in FROM meanwhile, and cancelled in TO
	Soon    int64  `json:"soon"`    // left to FROM: due within the margin
}

// open opens both sides, copies and closes them.
func (c *sourceCopier) open(ctx context.Context, args []string, open sourceOpener) error {
	from, to, err := storeArgs(args[0], args[1])
	if err != nil {
		return err
	}
	opening, cancel := withTimeout(ctx, c.p.target.timeout)
	defer cancel()
	sources, done, err := open(opening, from, args[2:])
	if err != nil {
		return err
	}
	defer done()
	if c.dryRun {
		return c.run(ctx, sources)
	}
	if c.to, err = c.p.openToCopy(ctx, to); err != nil {
		return err
	}
	return closing(c.to, c.run(ctx, sources))
}

// run copies from the sources one after the other, and prints the result of each.
func (c *sourceCopier) run(ctx context.Context, sources []source.Source) (err error) {
	c.note = c.p.note()
	out := c.p.printer()
	out.head("FROM", "COPIED", "KEPT", "REFUSED", "GONE", "SOON")
	for i := 0; i < len(sources) && err == nil; i++ {
		s := sources[i]
		r := sourceCopied{From: s.Name()}
		err = c.copy(ctx, s, &r)
		c.refused += r.Refused
		out.row(&r, r.From, r.Copied, r.Kept, r.Refused, r.Gone, r.Soon)
	}
	c.note.clear()
	err = cmp.Or(err, out.flush())
	if err == nil && c.refused > 0 {
		return failedf(c.err, "", "%s refused; the first: %v", messagesWere(c.refused), c.err)
	}
	return err
}

// copy copies from one source, page by page.
func (c *sourceCopier) copy(ctx context.Context, s source.Source, r *sourceCopied) error {
	for ctx.Err() == nil {
		all, err := s.Next(ctx)
		if err != nil || len(all) == 0 {
			return err
		}
		var good []source.Entry
		var drafts []tarry.Draft
		for _, e := range all {
			switch {
			case e.Err != nil:
				_ = c.failed(r, &e, e.Err) // it is this entry's
			case c.move && e.Due.At.Before(c.p.Now().Add(c.margin)):
				r.Soon++
			default:
				e.ContentType, e.OnConflict, e.Remember = contentType(e.Body), tarry.Keep, copyRemember
				good, drafts = append(good, e), append(drafts, e.Message)
			}
		}
		if err := c.page(ctx, s, good, drafts, r); err != nil {
			return err
		}
		c.note.say("%s: %d copied, %d kept", r.From, r.Copied, r.Kept)
	}
	return ctx.Err()
}

// page pushes entries, and removes them if they are to be moved.
func (c *sourceCopier) page(ctx context.Context, s source.Source, entries []source.Entry, drafts []tarry.Draft, r *sourceCopied) (stopped error) {
	if c.dryRun || len(entries) == 0 {
		r.Copied += int64(len(entries))
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pageWait)
	defer cancel()
	pushed, err := c.to.PushMany(ctx, drafts)
	if err != nil {
		return err
	}
	var has []source.Entry // what TO has now
	for i := range pushed {
		e := &entries[i]
		e.New = pushed[i].Outcome == tarry.Created
		err := pushed[i].Err
		if err == nil && !e.New {
			err = c.same(ctx, &drafts[i])
		}
		if err != nil {
			stopped = cmp.Or(stopped, c.failed(r, e, err))
			continue
		}
		r.Kept += one(!e.New)
		r.Copied += one(e.New)
		has = append(has, *e)
	}
	if c.move && len(has) > 0 {
		stopped = cmp.Or(c.remove(ctx, s, has, r), stopped)
	}
	return stopped
}

// same returns an error if the live message with the draft's key has another body.
func (c *sourceCopier) same(ctx context.Context, d *tarry.Draft) error {
	there, err := c.to.Get(ctx, tarry.ByKey(d.Key).Of(d.Queue))
	if errors.Is(err, tarry.ErrNotFound) || err == nil && (there.State == tarry.Finished || string(there.Body) == string(d.Body)) {
		return nil
	}
	return cmp.Or(err, fmt.Errorf("TO has another message with the key %s", engine.Clip(d.Key)))
}

// remove removes what was pushed from its source. Where that has taken or changed an entry
// meanwhile, it cancels the message, whose key must not be remembered: the entry may come again.
func (c *sourceCopier) remove(ctx context.Context, s source.Source, pushed []source.Entry, r *sourceCopied) error {
	removed, err := s.Remove(ctx, pushed)
	if err != nil {
		return err
	}
	for i, e := range pushed {
		if removed[i] || !e.New {
			continue
		}
		r.Copied--
		e.OnConflict, e.Remember = tarry.Replace, tarry.Never
		_, err := c.to.PushDraft(ctx, e.Message)
		if err == nil {
			err = c.to.Cancel(ctx, tarry.ByKey(e.Key).Of(e.Queue))
		}
		if err == nil {
			r.Gone++
		} else if err := c.failed(r, &e, fmt.Errorf("it was taken both in FROM and in TO: %w", err)); err != nil {
			return err
		}
	}
	return nil
}

// failed returns an error that ends the copy. Any other is that of an entry which was not
// copied: it is counted, and the first ones are told.
func (c *sourceCopier) failed(r *sourceCopied, e *source.Entry, err error) error {
	if stops(err) {
		return err
	}
	c.err = cmp.Or(c.err, err)
	if r.Refused++; r.Refused <= 10 {
		c.note.clear()
		fmt.Fprintf(c.p.Stderr, "%s: %s: %s\n", shown(r.From), shown(engine.Clip(e.ID)), shown(err.Error()))
	}
	return nil
}
