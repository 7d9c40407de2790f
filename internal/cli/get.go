package cli

import (
	"context"
	"fmt"
	"strings"

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
		Long: `Get shows a message. By key it is the live one, else the finished one whose key is
remembered, else the newest dead one. By id it is any message that is not finished. For a
finished message it shows how and when it ended; the body is gone.`,
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
	arg.add(cmd)
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
		o.pairs(append(rows, [2]string{m.Ending.String(), p.dueText(m.Ended)}, [2]string{"forgotten", p.dueText(m.Forgotten)}))
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
		{"leased until", formatTime(m.Deadline)},
		{"leased by", m.Worker},
		{"died", formatTime(m.Died)},
		{"last error", oneCell(m.LastError)},
		{"content type", m.ContentType},
	}...)
	for _, f := range m.Failures {
		text := fmt.Sprintf("%s attempt %d", formatTime(f.At), f.Attempt)
		if f.Worker != "" {
			text += " by " + f.Worker
		}
		rows = append(rows, [2]string{"failure", text + ": " + oneCell(f.Reason)})
	}
	for _, h := range m.Headers {
		rows = append(rows, [2]string{"header", h.Name + "=" + h.Value})
	}
	o.pairs(rows)
	o.text("\n" + readable(m.Body) + "\n")
}

// pairs writes a line for each name with a value.
func (o *printer) pairs(rows [][2]string) {
	for _, r := range rows {
		if r[1] != "" {
			o.row(nil, r[0], r[1])
		}
	}
}
