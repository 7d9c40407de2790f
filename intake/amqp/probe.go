package amqp

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/rabbit"
)

// probe finds out whether the broker accepts messages. It says so only to a connection that
// publishes, and reads nothing more from that one: so it is one of its own.
type probe struct {
	conn    *amqp.Connection
	ch      *amqp.Channel
	changes chan amqp.Blocking
	latest  amqp.Blocking
}

// look publishes an empty message that no queue takes, and returns why the broker accepts
// none, if it has said so.
func (p *probe) look(ctx context.Context, s *source) error {
	if p.conn == nil || p.conn.IsClosed() {
		conn, err := s.connect(ctx)
		if err != nil {
			return err
		}
		p.conn, p.ch, p.latest = conn, nil, amqp.Blocking{}
		p.changes = conn.NotifyBlocked(make(chan amqp.Blocking, 16))
	}
	for len(p.changes) > 0 {
		p.latest = <-p.changes
	}
	if p.latest.Active {
		return &intake.Trouble{Code: "blocked", Err: fmt.Errorf("%w: %s", rabbit.ErrBlocked, p.latest.Reason), Hint: hints["blocked"]}
	}
	var err error
	if p.ch == nil {
		if p.ch, err = p.conn.Channel(); err != nil {
			return s.trouble(err, "")
		}
	}
	if p.ch.IsClosed() {
		return nil // the user may not publish: there is nothing to find out
	}
	return s.trouble(p.ch.PublishWithContext(ctx, "", "", false, false, amqp.Publishing{}), "")
}

func (p *probe) close() {
	if p.conn != nil {
		rabbit.HangUp(p.conn)
	}
}
