package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

func (p *Program) getCommand() *cobra.Command {
	var (
		arg refArg
		raw bool
	)
	cmd := p.client(showEmpty, &cobra.Command{
		Use:        "get QUEUE KEY",
		SuggestFor: []string{"show", "peek"},
		Short:      "Look up a message",
		Long: `Get shows a message. By key it is the live one, else the one whose key is remembered, else
the one that died or finished last and is listed. By id it is any that is live or listed. For
a finished message it shows how it ended; the body is gone.`,
		Example: "  tarry get order.unpaid 42\n  tarry get order.unpaid --id 1234 --raw > body",
	}, func(ctx context.Context, c *tarry.Client, _ *cobra.Command, args []string) error {
		ref, _, err := arg.ref(args[1:])
		if err != nil {
			return err
		}
		m, err := c.Get(ctx, ref.Of(args[0]))
		if err != nil {
			return err
		}
		if raw && m.State == tarry.Finished {
			return &engine.Error{Op: "get", Queue: m.Queue, Key: m.Key, Err: tarry.ErrNotFound,
				Hint: fmt.Sprintf("it was %s at %s, and its body has gone with it", m.Ending, formatTime(m.Ended))}
		}
		if raw {
			_, err := p.Stdout.Write(m.Body)
			return err
		}
		o := p.printer()
		if p.json {
			o.object(messageJSON(&m, true))
		} else {
			p.describe(o, m)
		}
		return o.flush()
	})
	arg.add(cmd, 0)
	cmd.Flags().BoolVar(&raw, "raw", false, "print the body alone, byte for byte")
	return cmd
}

// describe writes a message, one line for each field.
func (p *Program) describe(o *printer, m tarry.Info) {
	rows := [][2]string{
		{"id", m.ID.String()},
		{"queue", m.Queue},
		{"key", m.Key},
		{"state", m.State.String()},
		{"due", p.dueText(m.Due)},
	}
	if m.State == tarry.Finished {
		rows = append(rows, [2]string{m.Ending.String(), p.dueText(m.Ended)})
		if !m.Created.IsZero() { // else only its key is left
			rows = append(rows, [][2]string{
				{"created", formatTime(m.Created)},
				{"attempt", fmt.Sprint(m.Attempt)},
				{"late by", between(m.Due, m.Started)},
				{"ran for", between(m.Started, m.Ended)},
				{m.Ending.String() + " by", m.Worker},
				{"last error", oneCell(m.LastError)},
			}...)
		}
		if !m.Forgotten.IsZero() {
			rows = append(rows, [2]string{"forgotten", p.dueText(m.Forgotten)})
		}
		o.pairs(append(rows, failureRows(m.Failures)...))
		return
	}
	rows = append(rows, [][2]string{
		{"created", formatTime(m.Created)},
		{"expires", formatTime(m.Expires)},
		{"attempt", fmt.Sprintf("%d of %d", m.Attempt, m.MaxAttempts)},
		{"priority", fmt.Sprint(m.Priority)},
		{"ttr", tarry.FormatDuration(m.TTR)},
		{"remembered for", orNothing(m.Remember)},
		{"backoff", strings.ReplaceAll(durationsText(m.Backoff), ",", ", ")},
		{"leased since", formatTime(m.Started)},
		{"leased until", formatTime(m.Deadline)},
		{"leased by", m.Worker},
		{"died", formatTime(m.Died)},
		{"last error", oneCell(m.LastError)},
		{"content type", m.ContentType},
	}...)
	rows = append(rows, failureRows(m.Failures)...)
	for _, h := range m.Headers {
		rows = append(rows, [2]string{"header", h.Name + "=" + h.Value})
	}
	o.pairs(rows)
	o.text("\n" + readable(m.Body) + "\n")
}

// between formats the time from one instant to another; "" if one is not known.
func between(from, to time.Time) string {
	if from.IsZero() || to.IsZero() {
		return ""
	}
	return tarry.FormatDuration(max(0, to.Sub(from)))
}

func failureRows(all []tarry.Failure) (rows [][2]string) {
	for _, f := range all {
		text := fmt.Sprintf("%s attempt %d", formatTime(f.At), f.Attempt)
		if f.Worker != "" {
			text += " by " + f.Worker
		}
		rows = append(rows, [2]string{"failure", text + ": " + oneCell(f.Reason)})
	}
	return rows
}

// pairs writes a line for each name with a value.
func (o *printer) pairs(rows [][2]string) {
	for _, r := range rows {
		if r[1] != "" {
			o.row(nil, r[0], r[1])
		}
	}
}
