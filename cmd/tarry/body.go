package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// readBody returns the body that an argument gives: the argument itself, or
// standard input for "-", of which at most most bytes are taken.
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

// contentType names what a body looks like.
func contentType(body []byte) string {
	switch {
	case json.Valid(body):
		return "application/json"
	case utf8.Valid(body):
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// messageFlags are what a pushed message may have beside body, key and due.
type messageFlags struct {
	given       func(flag string) bool
	contentType string
	headers     []string
	priority    uint32
	maxAttempts uint32
	backoff     []time.Duration
	ttr         time.Duration
	expireAfter time.Duration
	remember    time.Duration
}

func (m *messageFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	m.given = f.Changed
	f.StringVar(&m.contentType, "content-type", "", "what the body is (default: application/json, text/plain or application/octet-stream, as it looks)")
	f.StringArrayVar(&m.headers, "header", nil, "NAME=VALUE that travels with the message; may be repeated")
	f.Uint32Var(&m.priority, "priority", 0, fmt.Sprintf("lower goes first among ready messages (default: the queue's, else %d)", tarry.DefaultPriority))
	f.Uint32Var(&m.maxAttempts, "max-attempts", 0, fmt.Sprintf("attempts before the message is dead (default: the queue's, else %d)", tarry.DefaultMaxAttempts))
	f.Var((*durationsValue)(&m.backoff), "backoff", "rest after the 1st, 2nd, … failed attempt, such as 15s,30s,3m (default: the queue's, else 1s doubling up to 1h)")
	f.Var((*durationValue)(&m.ttr), "ttr", "how long a worker may hold it (default: the queue's, else 1m)")
	f.Var((*durationValue)(&m.remember), "remember", "how long its key stays known when it has gone; 0: not at all (default: the queue's, else not at all)")
	f.Var((*durationValue)(&m.expireAfter), "expire-after", "drop it when it cannot be handed out until this long after it was due; 0: never (default: the queue's, else never)")
}

func (m *messageFlags) options(body []byte) ([]tarry.PushOption, error) {
	if m.contentType == "" {
		m.contentType = contentType(body)
	}
	opts := []tarry.PushOption{tarry.ContentType(m.contentType)}
	switch {
	case m.given("max-attempts") && m.maxAttempts == 0:
		return nil, usagef("leave it out for the default", "--max-attempts must be at least 1")
	case m.given("ttr") && m.ttr == 0:
		return nil, usagef("leave it out for the default", "--ttr must be at least 1ms")
	}
	for flag, term := range map[string]tarry.PushOption{
		"priority":     tarry.Priority(m.priority),
		"max-attempts": tarry.MaxAttempts(m.maxAttempts),
		"backoff":      tarry.Backoff(m.backoff...),
		"ttr":          tarry.TTR(m.ttr),
		"remember":     tarry.Remember(m.remember),
		"expire-after": tarry.ExpireAfter(m.expireAfter),
	} {
		if m.given(flag) {
			opts = append(opts, term)
		}
	}
	for _, h := range m.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return nil, usagef("as in --header trace=42", "--header %q is not NAME=VALUE", h)
		}
		opts = append(opts, tarry.Header(name, value))
	}
	return opts, nil
}

// showPushed prints the answer to a push.
func (p *Program) showPushed(asJSON bool, r tarry.Pushed) error {
	o := p.printer(asJSON)
	j := asAPI(func(b []byte) []byte {
		return wire.AppendPushed(b, &wire.Pushed{
			PushResult: engine.PushResult{Outcome: r.Outcome, ID: r.ID, Due: r.Due, State: r.State}, Queue: r.Queue, Key: r.Key,
		})
	})
	key := ""
	if r.Key != "" {
		key = " key " + shown(r.Key)
	}
	if err := o.line(j, "%s %s id %s%s, due %s", r.Outcome.String(), r.Queue, r.ID.String(), key, p.dueText(r.Due)); err != nil {
		return err
	}
	return o.flush()
}

// conflictHint adds to a conflict what is in the way.
func conflictHint(err error, r tarry.Pushed) error {
	var e *engine.Error
	if r.ID == 0 || !errors.As(err, &e) {
		return err
	}
	with := *e
	switch {
	case errors.Is(err, tarry.ErrExists):
		with.Hint = fmt.Sprintf("id %s holds it, %s, due %s; choose with --on-conflict keep, replace, keep_due or rearm", r.ID, r.State, formatTime(r.Due))
	case errors.Is(err, tarry.ErrLeased):
		with.Hint = fmt.Sprintf("too late: a worker holds id %s", r.ID)
	}
	return &with
}
