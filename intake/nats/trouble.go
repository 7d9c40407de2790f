package nats

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tarryhq/tarry/intake"
)

// trouble converts an error of NATS.
func (c *conn) trouble(err error) error {
	if err == nil {
		return nil
	}
	nc := c.nc
	if nc != nil && nc.LastError() != nil && (errors.Is(nc.LastError(), nats.ErrPermissionViolation) || nc.IsClosed()) {
		err = nc.LastError()
	}
	is := func(all ...error) bool {
		return slices.ContainsFunc(all, func(target error) bool { return errors.Is(err, target) })
	}
	t := &intake.Trouble{Code: intake.CodeFailed, Err: err, Hint: "NATS returned this error"}
	switch {
	case is(jetstream.ErrStreamNotFound, jetstream.ErrNoStreamResponse):
		t.Code, t.Hint = "no_stream", "make the stream, or let the intake with declare=true and a subject"
	case is(jetstream.ErrConsumerNotFound, jetstream.ErrConsumerDeleted, jetstream.ErrConsumerDoesNotExist):
		t.Code, t.Hint = "no_consumer", "make a durable pull consumer, or let the intake with declare=true"
	case is(jetstream.ErrNotPullConsumer):
		t.Code, t.Hint = "mismatch", "the consumer is none to pull from; give another as durable"
	case is(jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount, nats.ErrNoResponders):
		t.Code, t.Hint = "no_jetstream", "switch JetStream on, for the account of this user too"
	case is(nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired):
		t.Code, t.Hint = intake.CodeCredentials, "check the user, password or credentials of the source's URL"
	case is(nats.ErrPermissionViolation):
		t.Code, t.Hint = intake.CodeForbidden, "let the user publish to $JS.API.> and $JS.ACK.>, and subscribe to _INBOX.>"
	case nc == nil, nc.IsClosed(), is(nats.ErrTimeout, context.DeadlineExceeded, jetstream.ErrNoHeartbeat):
		t.Code, t.Hint = intake.CodeUnreachable, "check that NATS runs at "+strings.Join(c.servers, ", ")+"; the intake connects again by itself"
	}
	return t
}
