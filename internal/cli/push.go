package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/names"
	"github.com/tarryhq/tarry/internal/wire"
)

// warnReserved warns if a queue has a reserved name.
func (p *Program) warnReserved(queue string) {
	if names.Reserved(queue) {
		fmt.Fprintln(p.Stderr, "tarry: names that begin with tarry. are tarry's own: no pattern such as * takes them in routes and for tokens")
	}
}

func (p *Program) pushCommand() *cobra.Command {
	var (
		due        dueFlags
		message    messageFlags
		key        string
		onConflict string
	)
	cmd := p.client(makeIt, &cobra.Command{
		Use:   "push QUEUE BODY|-",
		Short: "Push a message, due now, after a delay or at a time",
		Long: `Push stores a message until it is due. The body is the argument, or standard input if the
argument is "-". Push returns once the message is as durable as the store makes it.`,
		Example: `  tarry push order.unpaid '{"order":42}' --in 30m --key 42
  tarry push reports - --at 2030-01-02T15:04:05Z < report.json`,
		Args: exactly("QUEUE", "BODY"),
	}, func(ctx context.Context, c *tarry.Client, cmd *cobra.Command, args []string) error {
		d, err := due.due(cmd, false)
		if err != nil {
			return err
		}
		policy, err := engine.ParseConflict(onConflict)
		if err != nil {
			return usagef("it is reject, keep, replace, keep_due or rearm", "--on-conflict %q is unknown", onConflict)
		}
		body, err := p.readBody(args[0], args[1], c.MaxBody())
		if err != nil {
			return err
		}
		m, err := message.draft(args[0], body)
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("key") && key == "" {
			return usagef("leave --key away for a message without a key", "the key is empty")
		}
		m.Key, m.Due, m.OnConflict = key, d.When(), policy
		p.warnReserved(m.Queue)
		r, err := c.PushDraft(ctx, m)
		if err != nil {
			return conflictHint(err, r)
		}
		return p.showPushed(r, policy)
	})
	due.add(cmd)
	f := cmd.Flags()
	f.StringVar(&key, "key", "", "your own name for the message, unique among the queue's live ones")
	f.StringVar(&onConflict, "on-conflict", "reject", "when a live message holds the key, or it is remembered: reject, keep, replace, keep_due or rearm")
	message.add(cmd)
	return cmd
}

// readBody returns the body that an argument gives: the argument itself, or for "-" standard
// input, up to most bytes.
func (p *Program) readBody(queue, arg string, most int) ([]byte, error) {
	if arg != "-" {
		return []byte(arg), nil
	}
	body, err := io.ReadAll(io.LimitReader(p.Stdin, int64(most)+1))
	if err != nil {
		return nil, fmt.Errorf("the body could not be read from standard input: %w", err)
	}
	if len(body) > most {
		return nil, &engine.Error{Op: "push", Queue: queue, Err: tarry.ErrTooLarge,
			Hint: fmt.Sprintf("at most %d bytes are allowed; raise --max-body of tarry serve, or push a reference to the data", most)}
	}
	return body, nil
}

// contentType guesses the content type of a body.
func contentType(body []byte) string {
	switch {
	case json.Valid(body):
		return "application/json"
	case utf8.Valid(body):
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// messageFlags are the flags of a pushed message, besides body, key and due time.
type messageFlags struct {
	termFlags
	contentType string
	headers     []string
}

func (m *messageFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&m.contentType, "content-type", "", "what the body is (default: application/json, text/plain or application/octet-stream, as it looks)")
	f.StringArrayVar(&m.headers, "header", nil, "NAME=VALUE that travels with the message; may be repeated")
	m.termFlags.add(cmd, "default: the queue's, else %s")
}

// draft returns a message with this body and the values of the flags.
func (m *messageFlags) draft(queue string, body []byte) (tarry.Draft, error) {
	opts := []tarry.PushOption{tarry.ContentType(cmp.Or(m.contentType, contentType(body)))}
	for _, h := range m.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return tarry.Draft{}, usagef("as in --header trace=42", "--header %q is not NAME=VALUE", h)
		}
		opts = append(opts, tarry.Header(name, value))
	}
	d := tarry.NewDraft(queue, body, opts...)
	var err error
	d.Terms, err = m.get()
	return d, err
}

// showPushed prints the result of a push with a policy.
func (p *Program) showPushed(r tarry.Pushed, policy tarry.Conflict) error {
	j := asAPI(func(b []byte) []byte {
		return wire.AppendPushed(b, &wire.Pushed{
			PushResult: engine.PushResult{Outcome: r.Outcome, ID: r.ID, Due: r.Due, State: r.State, Ending: r.Ending, Ended: r.Ended},
			Queue:      r.Queue, Key: r.Key,
		})
	})
	outcome := r.Outcome.String()
	if r.Outcome == tarry.Replaced && policy == tarry.Rearm {
		outcome = "rearmed" // only for people: rearm keeps the body
	}
	key := ""
	if r.Key != "" {
		key = " key " + shown(r.Key)
	}
	ended := ""
	if r.State == tarry.Finished {
		ended = ", " + r.Ending.String() + " " + p.dueText(r.Ended)
	}
	return p.show(j, "%s %s id %s%s, due %s%s", outcome, r.Queue, r.ID.String(), key, p.dueText(r.Due), ended)
}

// conflictHint adds to a conflict the message that is in the way.
func conflictHint(err error, r tarry.Pushed) error {
	var e *engine.Error
	if r.ID == 0 || !errors.As(err, &e) {
		return err
	}
	with := *e
	switch {
	case errors.Is(err, tarry.ErrExists) && r.State == tarry.Finished:
		with.Hint = fmt.Sprintf("id %s held it and was %s at %s, which is remembered; --on-conflict replace begins anew", r.ID, r.Ending, formatTime(r.Ended))
	case errors.Is(err, tarry.ErrExists) && r.State == tarry.Leased:
		with.Hint = fmt.Sprintf("id %s holds it, and a worker has it: until that is settled only --on-conflict keep is not refused", r.ID)
	case errors.Is(err, tarry.ErrExists):
		with.Hint = fmt.Sprintf("id %s holds it, %s, due %s; choose with --on-conflict keep, replace, keep_due or rearm", r.ID, r.State, formatTime(r.Due))
	case errors.Is(err, tarry.ErrLeased):
		with.Hint = fmt.Sprintf("too late: a worker holds id %s", r.ID)
	}
	return &with
}

// termFlags are the flags for the terms of messages.
type termFlags struct {
	given    func(flag string) bool
	terms    tarry.Terms
	priority uint32
	isolate  bool
}

// add adds the flags. In otherwise, %s stands for the default that holds without the flag.
func (t *termFlags) add(cmd *cobra.Command, otherwise string) {
	f := cmd.Flags()
	t.given = f.Changed
	unset := func(usage, def string) string { return fmt.Sprintf("%s (%s)", usage, fmt.Sprintf(otherwise, def)) }
	f.Uint32Var(&t.priority, "priority", 0, unset("lower goes first among ready messages", fmt.Sprint(tarry.DefaultPriority)))
	f.Uint32Var(&t.terms.MaxAttempts, "max-attempts", 0, unset("attempts before the message is dead", fmt.Sprint(tarry.DefaultMaxAttempts)))
	f.Var(durationsFlag(&t.terms.Backoff), "backoff", unset("rest after the 1st, 2nd, … failed attempt, such as 15s,30s,3m", "1s doubling up to 1h"))
	f.Var(durationFlag(&t.terms.TTR), "ttr", unset("how long a worker may hold it", tarry.FormatDuration(tarry.DefaultTTR)))
	f.Var(durationFlag(&t.terms.ExpireAfter), "expire-after", unset("drop it when it cannot be handed out until this long after it was due; 0: never", "never"))
	f.Var(durationFlag(&t.terms.Remember), "remember", unset("how long its key stays known when it has gone; 0: not at all", "not at all"))
	f.BoolVar(&t.isolate, "isolate", true, unset("lease it alone once it has lapsed twice", "true"))
}

// get returns the terms that the flags set.
func (t *termFlags) get() (tarry.Terms, error) {
	switch {
	case t.given("max-attempts") && t.terms.MaxAttempts == 0:
		return t.terms, usagef("leave it out for the default", "--max-attempts must be at least 1")
	case t.given("ttr") && t.terms.TTR == 0:
		return t.terms, usagef("leave it out for the default", "--ttr must be at least 1ms")
	}
	terms := t.terms
	if t.given("priority") {
		terms.Priority = &t.priority
	}
	if t.given("isolate") {
		terms.Isolate = &t.isolate
	}
	if t.given("expire-after") && terms.ExpireAfter == 0 {
		terms.ExpireAfter = tarry.Never
	}
	if t.given("remember") && terms.Remember == 0 {
		terms.Remember = tarry.Never
	}
	return terms, nil
}
