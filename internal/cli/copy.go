package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// copyFlags say what to copy, and how.
type copyFlags struct {
	dryRun, merge, lossy   bool
	settings, pauses, dead bool
}

func (p *Program) copyCommand() *cobra.Command {
	var f copyFlags
	cmd := &cobra.Command{
		Use:   "copy FROM TO [QUEUE…]",
		Short: "Copy the messages of one store to another",
		Long: `Copy pushes the scheduled and ready messages of FROM to TO, and copies settings and pauses
of queues. It copies all queues, or those named. FROM and TO are URLs of stores or servers,
or @FILE for a file that holds one. FROM does not change.

First stop the workers of both, and everything that pushes to FROM. Start them on TO when
copy has ended. If a queue already holds messages in TO, copy refuses unless --merge is
given, since messages without a key would be there twice. A message whose key TO knows is
left as it is in TO.

Leased messages, remembered keys, attempts, ids and creation times are not copied; copy
reports how many messages it left. Dead messages are copied with --dead: they die again in
TO, with their last error.`,
		Example: `  tarry copy disk:old disk:new --dry-run
  tarry copy disk:tarry-data @postgres.url
  tarry copy http://127.0.0.1:8277 disk:saved order.unpaid`,
		Args: atLeast("FROM", "TO"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.copyStores(cmd.Context(), &f, args[0], args[1], args[2:])
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "only count what would be copied, and change nothing")
	flags.BoolVar(&f.merge, "merge", false, "copy also to queues that hold messages in TO")
	flags.BoolVar(&f.lossy, "lossy", false, "copy also where TO has not all that messages may have in FROM")
	flags.BoolVar(&f.settings, "settings", true, "with the settings of queues")
	flags.BoolVar(&f.pauses, "pauses", true, "with the pauses of queues")
	flags.BoolVar(&f.dead, "dead", false, "with dead messages, where the queue holds nothing in TO")
	p.tokenFlag(cmd)
	timeoutFlag(cmd, &p.target.timeout, defaultTimeout, "how long opening each store may take; 0: no limit")
	p.jsonFlag(cmd, "print JSON, one object a queue")
	cmd.AddCommand(p.copyAsynqCommand(), p.copyZSetCommand(), p.copyTableCommand())
	return cmd
}

// copyStores opens both stores, copies and closes them.
func (p *Program) copyStores(ctx context.Context, f *copyFlags, fromArg, toArg string, queues []string) error {
	from, to, err := storeArgs(fromArg, toArg)
	if err != nil {
		return err
	}
	if from.String() == to.String() {
		return usagef("name two stores", "FROM and TO are the same")
	}
	if isServer(from) && isServer(to) && p.target.token != "" {
		return usagef("give each its own, as in http://host?token_file=PATH", "there is one token for two servers")
	}
	for _, q := range queues {
		if err := engine.CheckQueue("copy", q); err != nil {
			return err
		}
	}
	if err := checkPresent("copy", from); err != nil {
		return err
	}
	c := &copier{p: p, flags: f, note: p.note()}
	defer c.note.clear()
	if c.from, err = p.openToCopy(ctx, from); err != nil {
		return err
	}
	defer func() { _ = c.from.Close() }() // nothing was written to it
	if _, absent := absentDir(to); absent && f.dryRun {
		return c.run(ctx, queues) // TO would be empty, and a dry run must not make it
	}
	if c.to, err = p.openToCopy(ctx, to); err != nil {
		return err
	}
	return closing(c.to, c.run(ctx, queues))
}

// storeArgs parses the arguments FROM and TO.
func storeArgs(fromArg, toArg string) (from, to *url.URL, err error) {
	if from, err = storeArg(fromArg); err == nil {
		to, err = storeArg(toArg)
	}
	return from, to, err
}

// storeArg parses an argument that names a store.
func storeArg(arg string) (*url.URL, error) {
	raw := arg
	if path, ok := strings.CutPrefix(arg, "@"); ok {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, usagef("name a file that holds the URL of a store", "%s: %v", arg, err)
		}
		raw = strings.TrimSpace(string(data))
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" {
		return nil, usagef("such as disk:tarry-data or http://127.0.0.1:8277", "FROM and TO are URLs of stores") // the URL is not shown: it may hold a password
	}
	return u, nil
}

func (p *Program) openToCopy(ctx context.Context, u *url.URL) (*tarry.Client, error) {
	ctx, cancel := withTimeout(ctx, p.target.timeout)
	defer cancel()
	store := u.String()
	if isServer(u) {
		var err error
		if store, err = p.withToken(u); err != nil {
			return nil, err
		}
	}
	// No limit of the client's on bodies: a body that FROM accepted is refused only by TO
	// itself.
	return openStore(ctx, store, &tarry.Config{Logger: slog.New(slog.DiscardHandler), MaxBody: math.MaxInt})
}

// copier copies from one store to another.
type copier struct {
	p        *Program
	flags    *copyFlags
	from, to *tarry.Client // to is nil in a dry run when TO does not exist
	note     *note
	out      *printer
	total    copied
	queues   int
	refused  error // the error of the first message that TO refused
}

// run copies the named queues, or all.
func (c *copier) run(ctx context.Context, queues []string) error {
	if err := c.able(); err != nil {
		return err
	}
	if len(queues) == 0 {
		var err error
		if queues, err = c.all(ctx); err != nil {
			return err
		}
	}
	if err := c.vacant(ctx, queues); err != nil {
		return err
	}
	c.out = c.p.printer()
	c.out.head("QUEUE", "COPIED", "KEPT", "REFUSED", "EXPIRED", "DEAD", "SETTINGS", "PAUSE", "LEFT")
	err := c.each(ctx, queues)
	c.note.clear()
	if err = cmp.Or(err, c.out.flush()); err != nil {
		return c.cut(ctx, err)
	}
	fmt.Fprintln(c.p.Stderr, c.summary())
	if n := c.total.Refused; n > 0 {
		return failedf(c.refused, "", "%s refused; the first: %v", messagesWere(n), c.refused)
	}
	return nil
}

// all returns the names of all queues of FROM.
func (c *copier) all(ctx context.Context) (names []string, err error) {
	for q, err := range c.from.AllQueues(ctx) {
		if err != nil {
			return nil, err
		}
		names = append(names, q.Queue)
	}
	return names, nil
}

// vacant refuses queues that hold messages in TO already.
func (c *copier) vacant(ctx context.Context, queues []string) error {
	if c.to == nil || c.flags.merge {
		return nil
	}
	for _, name := range queues {
		q, err := c.to.Queue(ctx, name)
		if err != nil {
			return err
		}
		if n := q.Scheduled + q.Ready + q.Leased + q.Dead; n > 0 {
			return usagef("--merge copies all the same: what has a key in both stays as it is in TO, what has none is there twice when it was copied before",
				"the queue %s holds %s in TO", name, counted(n, "message"))
		}
	}
	return nil
}

// each copies the queues one after another, and prints the result of each.
func (c *copier) each(ctx context.Context, queues []string) error {
	for _, name := range queues {
		q := queueCopy{copier: c, name: name, copied: copied{Queue: name, Outcome: c.outcome()}}
		err := q.run(ctx)
		c.total.add(&q.copied)
		c.queues++
		c.out.row(&q.copied, q.copied.cells()...)
		if err = cmp.Or(err, c.out.pageSoon()); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) outcome() string {
	if c.flags.dryRun {
		return "counted"
	}
	return "copied"
}

// cut returns the error of a copy that was cut short.
func (c *copier) cut(ctx context.Context, err error) error {
	n, unkeyed := c.total.Copied, c.total.Unkeyed
	if n == 0 || c.flags.dryRun {
		return err
	}
	what := fmt.Sprintf("%s copied before, %d without a key", messagesWere(n), unkeyed)
	hint := "run it again with --merge, which leaves those with a key as they are in TO"
	if unkeyed > 0 {
		hint += "; those without would be there twice: empty TO first"
	}
	if interrupted(ctx, err) {
		return failedf(nil, hint, "interrupted; %s", what)
	}
	return fmt.Errorf("%w; %s: %s", err, what, hint)
}
