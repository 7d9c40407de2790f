package rabbit

import (
	"errors"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// ErrBlocked says that a broker accepts no messages.
var ErrBlocked = errors.New("RabbitMQ blocks publishers")

// HasCode reports whether the broker closed a channel or connection with this code.
func HasCode(err error, code int) bool {
	e, ok := errors.AsType[*amqp.Error](err)
	return ok && e.Code == code && e.Server
}

// OneLine joins the lines of a broker's error.
func OneLine(err error) error {
	if text := err.Error(); strings.ContainsAny(text, "\r\n") {
		return errors.New(strings.Join(strings.Fields(text), " "))
	}
	return err
}
