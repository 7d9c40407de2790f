//lint:file-ignore SA4006 the functions are the pages' code as it stands there
//lint:file-ignore U1000 one of them needs the plugin, and is only compiled

package from

import (
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
)

func delayedBefore(ch *amqp.Channel, body []byte, id string) (err error) {
	err = ch.ExchangeDeclare("delayed", "x-delayed-message", true, false, false, false,
		amqp.Table{"x-delayed-type": "topic"})
	err = ch.QueueBind("reminders", "order.*", "delayed", false, nil)

	err = ch.Publish("delayed", "order.unpaid", false, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, Body: body, MessageId: id,
		Headers: amqp.Table{"x-delay": int32(48 * 3600 * 1000)},
	})
	return err
}

func delayedAfter(ch *amqp.Channel, body []byte, id string) (err error) {
	err = ch.ExchangeDeclare("work", "topic", true, false, false, false, nil)
	err = ch.QueueBind("reminders", "order.*", "work", false, nil)

	err = ch.Publish("delayed.in", "order.unpaid", true, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, Body: body, MessageId: id,
		Headers: amqp.Table{"x-delay": int32(48 * 3600 * 1000), "x-tarry-key": "order-42"},
	})
	return err
}

func delayedCancel(ch *amqp.Channel) (err error) {
	// paid after all
	err = ch.Publish("delayed.in", "", true, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, Headers: amqp.Table{"x-tarry-cancel": "order-42"},
	})
	return err
}

func ttlBefore(ch *amqp.Channel, body []byte, id string) (err error) {
	_, err = ch.QueueDeclare("wait.30m", true, false, false, false, amqp.Table{
		"x-message-ttl": int32(1800 * 1000), "x-dead-letter-exchange": "work",
	})

	err = ch.Publish("", "wait.30m", false, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, Body: body, MessageId: id,
	})
	return err
}

func ttlAfter(ch *amqp.Channel, body []byte, id string) (err error) {
	err = ch.Publish("delayed.in", "order.unpaid", true, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, Body: body, MessageId: id,
		Headers: amqp.Table{"x-delay": int32(1800 * 1000)},
	})
	return err
}

func ttlRetry(ch *amqp.Channel, d amqp.Delivery, attempt int32) (err error) {
	// a consumer that failed
	d.Headers["attempt"], d.Headers["x-delay"] = attempt+1, int32(1000<<attempt)
	err = ch.Publish("delayed.in", d.RoutingKey, true, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent, Body: d.Body, Headers: d.Headers,
	})
	return err
}

// broker is an empty vhost and its addresses in the pages.
func broker(t *testing.T) (ch *amqp.Channel, addresses []string) {
	t.Helper()
	at := rabbittest.Shared(t)
	conn, err := amqp.Dial(at)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ch, err = conn.Channel()
	check(t, err)
	_, host, _ := strings.Cut(at, "@")
	return ch, []string{"127.0.0.1:5672/", host}
}

// bound declares an exchange, and a queue that takes what is published to it.
func bound(t *testing.T, ch *amqp.Channel, exchange, queue string) {
	t.Helper()
	check(t, ch.ExchangeDeclare(exchange, "topic", true, false, false, false, nil))
	_, err := ch.QueueDeclare(queue, true, false, false, false, nil)
	check(t, err)
	check(t, ch.QueueBind(queue, "order.*", exchange, false, nil))
}

// again runs the next shell block and keeps it.
func (p *page) again() string {
	p.Helper()
	step := p.steps[0]
	out := p.run()
	p.steps = append([]string{step}, p.steps...)
	return out
}

// come waits for a message.
func (p *page) come(ch *amqp.Channel) (d amqp.Delivery) {
	p.Helper()
	p.await("a message to come", func() (ok bool) {
		var err error
		d, ok, err = ch.Get("reminders", true)
		check(p.T, err)
		return ok
	})
	return d
}

// The plugin cannot be had: its exchange is an ordinary one here, to which the intake
// publishes what is due.
func TestFromTheDelayedMessagePlugin(t *testing.T) {
	ch, addresses := broker(t)
	p := follow(t, "rabbitmq-delayed.md", addresses...)
	p.compiled("rabbit_test.go")
	bound(t, ch, "delayed", "reminders")
	if out := p.run(); !strings.Contains(out, "tarry.delayed") {
		t.Errorf("tarry intake test says %q", out)
	}
	p.run() // tarry serve
	check(t, ch.Publish("delayed.in", "order.due", true, false, amqp.Publishing{Body: []byte("due"), Headers: amqp.Table{"x-delay": int32(100)}}))
	d := p.come(ch)
	if string(d.Body) != "due" || d.RoutingKey != "order.due" || d.Exchange != "delayed" {
		t.Errorf("got %q by %s of %s", d.Body, d.RoutingKey, d.Exchange)
	}
	check(t, delayedAfter(ch, []byte("unpaid"), "m-1"))
	p.await("it to be listed", func() bool { return strings.Contains(p.again(), "order-42") })
	check(t, delayedCancel(ch))
	p.await("it to be cancelled", func() bool { return !strings.Contains(p.again(), "order-42") })
	p.run()
	if out := p.run(); !strings.Contains(out, "exchange=work") || strings.Contains(out, "exchange=delayed ") {
		t.Errorf("the target is not changed: %s", out)
	}
	p.done()
}

func TestFromTTLAndDeadLetters(t *testing.T) {
	ch, addresses := broker(t)
	p := follow(t, "rabbitmq-ttl.md", addresses...)
	p.compiled("rabbit_test.go")
	bound(t, ch, "work", "reminders")
	check(t, ttlBefore(ch, []byte("old"), "m-1")) // goes on to wait
	p.run()
	p.run()
	check(t, ttlAfter(ch, []byte("new"), "m-2"))
	p.await("it to be listed", func() bool { return strings.Contains(p.again(), "m-2") })
	p.run()
	p.done()
	// A retry comes with its count, and waits longer each time.
	check(t, ttlRetry(ch, amqp.Delivery{RoutingKey: "order.unpaid", Body: []byte("again"), Headers: amqp.Table{}}, 0))
	for attempt := int32(1); attempt < 3; attempt++ {
		began := time.Now()
		d := p.come(ch)
		if string(d.Body) != "again" || fmt.Sprint(d.Headers["attempt"]) != fmt.Sprint(attempt) || time.Since(began) < time.Duration(attempt-1)*time.Second {
			t.Errorf("after %s came %+v", time.Since(began), d)
		}
		check(t, ttlRetry(ch, d, attempt))
	}
}
