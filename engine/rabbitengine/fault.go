package rabbitengine

import (
	"context"
	"errors"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
)

// unknown is the hint of a publish whose confirm did not come: here nothing can tell
// whether the broker has the message, and a repetition makes a second one.
const unknown = "the broker has not confirmed it, so it may have it or not; pushed again it may come twice"

// errNotConfirmed says that a connection ended before the broker had confirmed a message.
var errNotConfirmed = errors.New("the connection to RabbitMQ ended before it confirmed the message")

// fault is what the caller is told of an error of the connection or the broker.
func fault(op, queue string, err error) error {
	if err == nil {
		return nil
	}
	var done *engine.Error
	if errors.As(err, &done) {
		return err
	}
	out := &engine.Error{Op: op, Queue: queue, Err: engine.ErrUnavailable, Hint: "RabbitMQ does not answer; it is tried again"}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		out.Err, out.Hint = err, "it is not known whether it was carried out"
		return out
	}
	var a *amqp.Error
	if !errors.As(err, &a) {
		out.Hint = "RabbitMQ cannot be reached: " + engine.Clip(err.Error())
		return out
	}
	switch a.Code {
	case amqp.AccessRefused:
		out.Err, out.Hint = engine.ErrForbidden, "the user needs rights to configure, write and read what the prefix names: "+said(a)
		if op == "open" && strings.Contains(a.Reason, "username or password") {
			out.Err, out.Hint = engine.ErrUnauthorized, "RabbitMQ refuses the user or password"
		}
	case amqp.PreconditionFailed:
		out.Err, out.Hint = engine.ErrInvalid, "something of that name is there, made with other settings; choose another prefix, or delete it: "+said(a)
	case amqp.NotAllowed:
		out.Err, out.Hint = engine.ErrForbidden, "RabbitMQ does not allow it: "+said(a)
	case amqp.NotFound:
		out.Hint = "what is needed for it is not there, and is made again: " + said(a)
	default:
		out.Hint = "RabbitMQ has ended the connection: " + said(a)
	}
	return out
}

// said is what the broker said, kept short.
func said(a *amqp.Error) string {
	const most = 200
	if len(a.Reason) > most {
		return strings.ToValidUTF8(a.Reason[:most], "") + "…"
	}
	return a.Reason
}

// notFound reports whether the broker has not what a call was about.
func notFound(err error) bool {
	var a *amqp.Error
	return errors.As(err, &a) && a.Code == amqp.NotFound
}
