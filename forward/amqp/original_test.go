package amqp_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	rabbitmq "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/internal/rabbit"
	"github.com/tarryhq/tarry/internal/targettest"
)

// original is a message that an intake took.
func original(id uint64, key string, p rabbitmq.Publishing) *tarry.Message[[]byte] {
	e := rabbit.Envelope{Key: key, Properties: p}
	return message(id, "body", forward.Header{Name: rabbit.EnvelopeHeader, Value: e.Text()})
}

func TestOriginalsArriveAsTheyWere(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := channelTo(t, at)
	for _, queue := range []string{"a", "b"} {
		declare(t, ch, queue, nil)
		if err := ch.ExchangeDeclare("to-"+queue, "topic", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		if err := ch.QueueBind(queue, "k.#", "to-"+queue, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	named := rabbitmq.Publishing{Headers: rabbitmq.Table{"x-tarry-exchange": "to-b", "n": int64(1)}}
	plain := targettest.Open(t, at+"?exchange=to-a&original=true", nil)
	send(t, plain, original(1, "k.1", named))
	d := take(t, ch, "a")
	if d.RoutingKey != "k.1" || fmt.Sprint(d.Headers) != fmt.Sprint(named.Headers) || d.MessageId != "" || d.DeliveryMode != rabbitmq.Persistent {
		t.Errorf("got %+v", d)
	}
	allowed := targettest.Open(t, at+"?exchange=to-a&original=true&exchanges=to-c,to-b", nil)
	send(t, allowed, original(2, "k.2", named))
	if d := take(t, ch, "b"); d.RoutingKey != "k.2" {
		t.Errorf("got %+v", d)
	}
	send(t, targettest.Open(t, at+"?original=true&exchanges=*", nil), original(3, "k.3", named))
	take(t, ch, "b")
	forbidden := targettest.Open(t, at+"?exchange=to-a&original=true&exchanges=to-a", nil)
	targettest.BuriedWith(t, forbidden.Send(t.Context(), original(4, "k", named)), `"to-b"`, "not allowed", "exchanges=")

	full := targettest.Open(t, at+"?exchange=to-a&key=k.own&original=true&metadata=true", &forward.Options{Headers: []forward.Header{{Name: "n", Value: "two"}}})
	send(t, full, original(5, "other", rabbitmq.Publishing{Headers: rabbitmq.Table{"n": int64(1), "m": "x"}, UserId: "someone"}))
	d = take(t, ch, "a")
	want := rabbitmq.Table{"Tarry-Id": "5", "Tarry-Queue": "orders", "Tarry-Key": "order-5", "Tarry-Due": "2026-05-04T03:02:01.020Z", "Tarry-Attempt": "2",
		"n": "two", "m": "x", "x-tarry-user-id": "someone"}
	if d.RoutingKey != "k.own" || d.UserId != "" || fmt.Sprint(d.Headers) != fmt.Sprint(want) {
		t.Errorf("got %+v", d)
	}
	// Without original=true an envelope is a header like any other.
	send(t, targettest.Open(t, at+"?exchange=to-a&key=k", nil), original(6, "elsewhere", named))
	if d := take(t, ch, "a"); d.MessageId != "6" || d.Headers[rabbit.EnvelopeHeader] == nil || d.Headers["n"] != nil {
		t.Errorf("got %+v", d)
	}
	forged := message(7, "x", forward.Header{Name: rabbit.EnvelopeHeader, Value: "AUEA"})
	targettest.BuriedWith(t, plain.Send(t.Context(), forged), "no envelope", "intake")
	// What no intake took goes by the name of its queue, to which no queue is bound.
	targettest.Retried(t, plain.Send(t.Context(), message(8, "x")), "bind one")
}

// A return names no publish, and originals may have no id: each must be told from the others.
func TestReturnsAreOfTheRightOriginal(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	ch := channelTo(t, at)
	declare(t, ch, "orders", nil)
	if err := ch.QueueBind("orders", "", "amq.headers", false, rabbitmq.Table{"x-match": "all", "take": true}); err != nil {
		t.Fatal(err)
	}
	target := targettest.Open(t, at+"?exchange=amq.headers&original=true", quiet)
	var all sync.WaitGroup
	const n = 300
	for i := range n {
		all.Go(func() {
			good := i%3 > 0
			err := target.Send(t.Context(), original(1, "", rabbitmq.Publishing{Headers: rabbitmq.Table{"take": good, "n": int64(i % 7), "BCC": []any{"nowhere"}}}))
			if (err == nil) != good || err != nil && !strings.Contains(err.Error(), "bind one") {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	all.Wait()
	if came := count(t, ch, "orders"); came != n*2/3 {
		t.Errorf("%d messages came of %d", came, n*2/3)
	}
}

// The broker closes the channel for an exchange that is not there.
func TestAMissingExchangeHarmsNoOther(t *testing.T) {
	t.Parallel()
	at := rabbittest.Shared(t)
	declare(t, channelTo(t, at), "orders", nil)
	target := targettest.Open(t, at+"?original=true&exchanges=*", quiet)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			if i%5 == 0 {
				named := rabbitmq.Publishing{Headers: rabbitmq.Table{"x-tarry-exchange": "nowhere"}}
				targettest.Retried(t, target.Send(t.Context(), original(1, "orders", named)), "no exchange 'nowhere'")
				return
			}
			if err := target.Send(t.Context(), original(1, "orders", rabbitmq.Publishing{})); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
