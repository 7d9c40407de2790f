package amqp

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/internal/rabbit"
)

// over is a context that has ended and has told nobody yet.
type over struct{ context.Context }

func (over) Err() error                  { return context.Canceled }
func (over) Deadline() (time.Time, bool) { return time.Time{}, false }
func (over) Done() <-chan struct{}       { return nil }

// Who leaves as the broker closes the channel does not know for whose sake it did.
func TestWhoLeavesIsNotBuriedForAnother(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(rabbittest.Shared(t))
	if err != nil {
		t.Fatal(err)
	}
	o, err := (&forward.Options{Logger: slog.New(slog.DiscardHandler)}).Complete()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := parse(u, o)
	if err != nil {
		t.Fatal(err)
	}
	target, err := New(*cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	c, err := target.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.hangUp()
	bad := &amqp.Publishing{Expiration: "never"} // which RabbitMQ does not take
	if err := c.publish(t.Context(), "", "orders", bad); !rabbit.HasCode(err, amqp.PreconditionFailed) {
		t.Fatalf("sent alone: %v", err)
	}
	if err := c.publish(over{t.Context()}, "", "orders", bad); !errors.Is(err, context.Canceled) || rabbit.HasCode(err, amqp.PreconditionFailed) {
		t.Errorf("left meanwhile: %v", err)
	}
}
