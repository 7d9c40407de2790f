package rabbitengine

import (
	"context"
	"errors"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
)

// unknown is the hint of a publish without a confirm: nothing can show whether the broker
// has the message, and a repetition may make a second one.
const unknown = "the broker did not confirm it, so it may be stored or not; pushed again, it may come twice"

// errNotConfirmed says that a connection ended before the broker confirmed a message.
var errNotConfirmed = errors.New("the connection to RabbitMQ ended before it confirmed the message")

// fault converts an error of the connection or the broker to an engine.Error.
func fault(op, queue string, err error) error {
	if err == nil {
		return nil
	}
	var done *engine.Error
	if errors.As(err, &done) {
		return err
	}
	out := &engine.Error{Op: op, Queue: queue, Err: engine.ErrUnavailable, Hint: "RabbitMQ does not answer; the engine keeps trying"}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		out.Err, out.Hint = err, "the outcome is unknown"
		return out
	}
	var a *amqp.Error
	if !errors.As(err, &a) {
		out.Hint = "cannot reach RabbitMQ: " + engine.Clip(err.Error())
		return out
	}
	switch a.Code {
	case amqp.AccessRefused:
		out.Err, out.Hint = engine.ErrForbidden, "the user needs configure, write and read rights for names with the prefix: "+said(a)
		if op == "open" && strings.Contains(a.Reason, "username or password") {
			out.Err, out.Hint = engine.ErrUnauthorized, "RabbitMQ refuses the user or password"
		}
	case amqp.PreconditionFailed:
		out.Err, out.Hint = engine.ErrInvalid, "this name is in use with other settings; choose another prefix, or delete it: "+said(a)
	case amqp.NotAllowed:
		out.Err, out.Hint = engine.ErrForbidden, "RabbitMQ does not allow it: "+said(a)
	case amqp.NotFound:
		out.Hint = "a queue or exchange is missing and will be declared again: " + said(a)
	default:
		out.Hint = "RabbitMQ closed the connection: " + said(a)
	}
	return out
}

// said returns the broker's text, shortened.
func said(a *amqp.Error) string {
	const most = 200
	if len(a.Reason) > most {
		return strings.ToValidUTF8(a.Reason[:most], "") + "…"
	}
	return a.Reason
}

// notFound reports whether the broker does not have the object of a call.
func notFound(err error) bool {
	var a *amqp.Error
	return errors.As(err, &a) && a.Code == amqp.NotFound
}
