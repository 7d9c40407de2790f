package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

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
