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
	"refused_queue":        "refused messages wait for the queue that is named as this one, with " + refusedSuffix,
}

// replies are the codes of troubles by what the broker replies.
var replies = map[int]string{
	amqp.NotAllowed:         "vhost",
	amqp.AccessRefused:      intake.CodeForbidden,
	amqp.PreconditionFailed: "mismatch",
	amqp.ResourceLocked:     "locked",
	amqp.FrameError:         "frame",
	amqp.SyntaxError:        "frame",
}

func trouble(code string, err error) *intake.Trouble {
	return &intake.Trouble{Code: code, Err: rabbit.OneLine(err), Hint: hints[code]}
}

// trouble returns an error of the broker as a *intake.Trouble. missing is the code for what
// is not found.
func (s *source) trouble(err error, missing string) error {
	if err == nil {
		return nil
	}
	t := trouble(intake.CodeUnreachable, err)
	t.Hint = strings.Replace(t.Hint, "this address", strings.Join(s.broker.Addrs, ", "), 1)
	e, _ := errors.AsType[*amqp.Error](err)
	switch {
	case e == nil:
	case e == amqp.ErrVhost:
		return trouble("vhost", err)
	case e == amqp.ErrCredentials, e == amqp.ErrSASL:
		return trouble(intake.CodeCredentials, err)
	case e.Server && e.Code == amqp.NotFound:
		return trouble(missing, err)
	case e.Server && replies[e.Code] != "":
		return trouble(replies[e.Code], err)
	case !e.Server && strings.Contains(e.Reason, amqp.ErrSyntax.Reason):
		return trouble("frame", err)
	}
	return t
}
