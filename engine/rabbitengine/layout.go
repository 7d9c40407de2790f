package rabbitengine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"math/bits"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// layout names the exchanges and queues, and declares them.
type layout struct {
	prefix string
	unit   time.Duration
	delays []time.Duration // instead of digits
	quorum bool
}

// deliver returns the exchange that routes due messages to the work queues, by the last word
// of the routing key.
func (l *layout) deliver() string { return l.prefix + ".deliver" }

// parking returns the name of the exchange for messages that other exchanges cannot route,
// and of its queue.
func (l *layout) parking() string { return l.prefix + ".parking" }

// dead returns the exchange that routes dead messages to their queues.
func (l *layout) dead() string { return l.prefix + ".dead" }

func (l *layout) workQueue(queue string) string { return l.name(brokerQueue{queue: queue}) }

// brokerQueue is a queue of the broker that is declared when it is first needed: the work
// queue or the dead queue of a queue, or else the queue of a digit's value.
type brokerQueue struct {
	queue string
	dead  bool
	delay digitDelay
}

func (l *layout) name(q brokerQueue) string {
	switch {
	case q.queue == "":
		return l.digit(q.delay.digit) + "." + hex16(q.delay.value)
	case q.dead:
		return l.prefix + ".dead." + q.queue
	}
	return l.prefix + ".queue." + q.queue
}

// digit returns the exchange of a digit of delays; the lowest digit is 0. Its name contains
// the unit.
func (l *layout) digit(n int) string { return fmt.Sprintf("%s.delay.%s.%d", l.prefix, l.unit, n) }

// fixed returns the name of the exchange of a fixed delay, and of its queue.
func (l *layout) fixed(d time.Duration) string { return l.prefix + ".fixed." + d.String() }

// Delays are written in digits of four bits, lowest first, without leading zeros. Fewer
// words in a routing key make a topic exchange faster; fewer digits lead through fewer
// queues.
const (
	digitBits = 4
	values    = 1 << digitBits
)

func hex16(v uint64) string { return strconv.FormatUint(v, values) }

// digitDelay is the delay of one digit: 1 to 15 times 16^digit units.
type digitDelay struct {
	digit int
	value uint64
}

// units returns the delay in units.
func (s digitDelay) units() time.Duration { return time.Duration(s.value << (digitBits * s.digit)) }

// digitDelays yields the delays of the digits of a delay, last first.
func digitDelays(units uint64) iter.Seq[digitDelay] {
	return func(yield func(digitDelay) bool) {
		for n := 0; units > 0; n, units = n+1, units>>digitBits {
			if v := units % values; v > 0 && !yield(digitDelay{n, v}) {
				return
			}
		}
	}
}

// wordMost is the longest queue name in a routing key. A key has 255 bytes, and each digit
// of the delay takes two.
const wordMost = 150

// word returns a queue's name as one word of a routing key: unique and without dots.
func word(queue string) string {
	if len(queue) > wordMost {
		sum := sha256.Sum256([]byte(queue))
		return ":" + hex.EncodeToString(sum[:])
	}
	return strings.ReplaceAll(queue, ".", ":") // no queue name has a colon
}

// route says where to publish a message, and for which delay queues must exist.
type route struct {
	exchange, key string
	units         uint64
}

// to returns the route to a queue after a delay, and the least time that it takes.
func (l *layout) to(queue string, delay time.Duration) (route, time.Duration) {
	switch {
	case delay <= 0:
		return route{exchange: l.deliver(), key: word(queue)}, 0
	case len(l.delays) > 0:
		d := l.delays[len(l.delays)-1]
		for _, longer := range l.delays {
			if longer >= delay-time.Millisecond { // due times are rounded up to a millisecond
				d = longer
				break
			}
		}
		return route{exchange: l.fixed(d), key: word(queue)}, d
	}
	units := uint64((delay + l.unit - 1) / l.unit)
	units = min(units, l.most())
	var key strings.Builder
	for left := units; left > 0; left >>= digitBits {
		key.WriteString(hex16(left % values))
		key.WriteByte('.')
	}
	key.WriteString(word(queue))
	return route{l.digit((bits.Len64(units) - 1) / digitBits), key.String(), units}, time.Duration(units) * l.unit
}

// longest returns the longest delay.
func (l *layout) longest() time.Duration {
	if n := len(l.delays); n > 0 {
		return l.delays[n-1]
	}
	return time.Duration(l.most()) * l.unit
}

// most returns the longest delay in units, and digits how many digits it has.
func (l *layout) most() uint64 { return uint64(maxSpan / l.unit) }
func (l *layout) digits() int  { return (bits.Len64(l.most()) + digitBits - 1) / digitBits }

// deliveries is the delivery limit of quorum queues: a very large number. RabbitMQ 4 has a
// default of 20 and takes -1 for no limit; earlier versions take no negative number.
const deliveries = 1 << 30

// arguments returns the arguments of a queue. If then is set, messages are dead-lettered to
// it after ttl; with ttl 0, only when a policy expires them.
func (l *layout) arguments(ttl time.Duration, then string) amqp.Table {
	t := amqp.Table{amqp.QueueTypeArg: string(Classic)}
	if ttl > 0 {
		t["x-message-ttl"] = ttl.Milliseconds()
	}
	if then != "" {
		t["x-dead-letter-exchange"] = then
	}
	if l.quorum {
		t[amqp.QueueTypeArg], t["x-delivery-limit"] = string(Quorum), deliveries
		t["x-overflow"] = "reject-publish"
	}
	if l.quorum && then != "" {
		t["x-dead-letter-strategy"] = "at-least-once"
	}
	return t
}

// declare declares what all queues share.
func (l *layout) declare(ch *amqp.Channel) error {
	d := declarer{ch: ch}
	d.exchange(l.parking(), amqp.ExchangeFanout, "")
	d.queue(l.parking(), l.arguments(0, "")) // RabbitMQ forwards nothing from a queue to itself
	d.bind(l.parking(), "", l.parking())
	d.exchange(l.deliver(), amqp.ExchangeTopic, l.parking())
	d.exchange(l.dead(), amqp.ExchangeDirect, l.parking())
	for _, delay := range l.delays {
		name := l.fixed(delay)
		d.exchange(name, amqp.ExchangeFanout, l.parking())
		d.queue(name, l.arguments(delay, l.deliver()))
		d.bind(name, "", name)
	}
	if len(l.delays) > 0 {
		return d.err
	}
	for n := range l.digits() {
		d.exchange(l.digit(n), amqp.ExchangeTopic, l.parking())
		d.do(func() error { return ch.ExchangeBind(l.below(n), binding(n, 0), l.digit(n), true, nil) })
	}
	// The broker answers in order: this answer shows that all is done.
	d.do(func() error {
		return ch.ExchangeDeclare(l.deliver(), amqp.ExchangeTopic, true, false, false, false, alternate(l.parking()))
	})
	return d.err
}

// below returns the exchange that follows a digit.
func (l *layout) below(digit int) string {
	if digit == 0 {
		return l.deliver()
	}
	return l.digit(digit - 1)
}

// binding returns a pattern that matches the routing keys with a digit's value.
func binding(digit int, value uint64) string {
	return strings.Repeat("*.", digit) + hex16(value) + ".#"
}

// declareQueue declares a queue, and binds it to the exchange that routes messages to it.
func (l *layout) declareQueue(ch *amqp.Channel, q brokerQueue) error {
	from, key, args := l.deliver(), "#."+word(q.queue), l.arguments(0, l.parking())
	switch {
	case q.queue == "":
		from, key = l.digit(q.delay.digit), binding(q.delay.digit, q.delay.value)
		args = l.arguments(q.delay.units()*l.unit, l.below(q.delay.digit))
	case q.dead:
		from, key = l.dead(), word(q.queue)
	}
	d := declarer{ch: ch}
	d.queue(l.name(q), args)
	d.do(func() error { return ch.QueueBind(l.name(q), key, from, false, nil) })
	return d.err
}

// declarer makes declarations until one fails.
type declarer struct {
	ch  *amqp.Channel
	err error
}

func (d *declarer) do(declare func() error) {
	if d.err == nil {
		d.err = declare()
	}
}

func alternate(exchange string) amqp.Table {
	if exchange == "" {
		return nil
	}
	return amqp.Table{"alternate-exchange": exchange}
}

func (d *declarer) exchange(name, kind, otherwise string) {
	d.do(func() error { return d.ch.ExchangeDeclare(name, kind, true, false, false, true, alternate(otherwise)) })
}

func (d *declarer) queue(name string, args amqp.Table) {
	d.do(func() error {
		_, err := d.ch.QueueDeclare(name, true, false, false, false, args)
		return err
	})
}

func (d *declarer) bind(queue, key, exchange string) {
	d.do(func() error { return d.ch.QueueBind(queue, key, exchange, true, nil) })
}
