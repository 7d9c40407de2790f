package amqp

import (
	"errors"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/rabbit"
)

var errEnded = errors.New("RabbitMQ ended the delivery: messages were unacked for too long, or the queue has moved to another node")

// hints say what to do, by the code of a trouble.
var hints = map[string]string{
	intake.CodeUnreachable: "check that RabbitMQ runs at this address; the intake connects again by itself",
	intake.CodeCredentials: "check the user and the password in the source's URL",
	intake.CodeForbidden:   "give the user the right to read the queue, and with declare=true to configure it and its exchange",
	"vhost":                "check the vhost in the source's URL, and that the user has rights in it",
	"no_queue":             "make the queue, or let the intake with declare=true; a policy with expires deletes queues",
	"no_exchange":          "make the exchange, or let the intake with declare=true; until then no message reaches the queue",
	"mismatch":             "the broker has it with other settings; give the source the same, or declare=false",
	"locked":               "another connection uses the queue exclusively; end it, or take another queue",
	"timeout":              "the store took too long, and the messages come again; raise RabbitMQ's consumer_timeout if it was not down",
	"frame":                "the client cannot read what the broker sends; move the first message of the queue by other means",
	"blocked":              "give RabbitMQ memory or disk, or have messages consumed; until then nothing comes, and what is due waits",
}

// trouble returns an error of the broker as a *intake.Trouble. missing is the code for what
// is not found.
func (s *source) trouble(err error, missing string) error {
	if err == nil {
		return nil
	}
	code := intake.CodeUnreachable
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(amqp.ErrVhost), rabbit.HasCode(err, amqp.NotAllowed):
		code = "vhost"
	case is(amqp.ErrCredentials), is(amqp.ErrSASL):
		code = intake.CodeCredentials
	case rabbit.HasCode(err, amqp.AccessRefused):
		code = intake.CodeForbidden
	case rabbit.HasCode(err, amqp.NotFound):
		code = missing
	case rabbit.HasCode(err, amqp.PreconditionFailed):
		code = "mismatch"
	case rabbit.HasCode(err, amqp.ResourceLocked):
		code = "locked"
	case is(amqp.ErrSyntax), is(amqp.ErrFrame), is(amqp.ErrFrameTooLarge), rabbit.HasCode(err, amqp.FrameError), rabbit.HasCode(err, amqp.SyntaxError):
		code = "frame"
	}
	err = rabbit.OneLine(err)
	if code == intake.CodeUnreachable {
		return &intake.Trouble{Code: code, Err: err, Hint: strings.Replace(hints[code], "this address", strings.Join(s.broker.Addrs, ", "), 1)}
	}
	return &intake.Trouble{Code: code, Err: err, Hint: hints[code]}
}
