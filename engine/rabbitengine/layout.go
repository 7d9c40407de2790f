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

// layout is what exchanges and queues there are, and how they are called.
type layout struct {
	prefix string
	unit   time.Duration
	levels int
	delays []time.Duration // instead of levels
	quorum bool
}

// deliver is the exchange that routes what is due to the work queues, by the last word of
// the routing key.
func (l *layout) deliver() string { return l.prefix + ".deliver" }

// parking is the exchange of what others can route nowhere, and its queue.
func (l *layout) parking() string { return l.prefix + ".parking" }

// dead is the exchange that routes the dead to their queues.
func (l *layout) dead() string { return l.prefix + ".dead" }

func (l *layout) workQueue(queue string) string { return l.prefix + ".queue." + queue }
func (l *layout) deadQueue(queue string) string { return l.prefix + ".dead." + queue }

// digit is the exchange of a digit of delays, the lowest is 0. Another unit has other ones.
func (l *layout) digit(n int) string { return fmt.Sprintf("%s.delay.%s.%d", l.prefix, l.unit, n) }

// delayQueue is the queue of a value of a digit.
func (l *layout) delayQueue(s stay) string { return l.digit(s.digit) + "." + hex16(s.value) }

// fixed is the exchange of a fixed delay, and its queue.
func (l *layout) fixed(d time.Duration) string { return l.prefix + ".fixed." + d.String() }

// Delays are written by digits of four bits, the lowest first, and no more than there are: the
// fewer words a routing key has, the less a topic exchange has to look up, and the fewer
// digits, the fewer queues a message waits in one after the other.
const (
	digitBits = 4
	values    = 1 << digitBits
	maxDigits = (maxLevels + digitBits - 1) / digitBits
)

func hex16(v uint64) string { return strconv.FormatUint(v, values) }

// stay is where a message stays for its value of a digit, 1 to 15 times 16^digit units.
type stay struct {
	digit int
	value uint64
}

// units is how long that is.
func (s stay) units() time.Duration { return time.Duration(s.value << (digitBits * s.digit)) }

// number counts them from 0.
func (s stay) number() int { return s.digit<<digitBits | int(s.value) }

// stays are the queues that a delay of so many units leads through, the last first.
func stays(units uint64) iter.Seq[stay] {
	return func(yield func(stay) bool) {
		for n := 0; units > 0; n, units = n+1, units>>digitBits {
			if v := units % values; v > 0 && !yield(stay{n, v}) {
				return
			}
		}
	}
}

// wordMost is how long a queue's name may be to stand in a routing key, which has 255
// bytes, with two for each digit of the delay before it.
const wordMost = 150

// word is a queue in routing keys: one word, and so without dots, another for each queue.
func word(queue string) string {
	if len(queue) > wordMost {
		sum := sha256.Sum256([]byte(queue))
		return ":" + hex.EncodeToString(sum[:])
	}
	return strings.ReplaceAll(queue, ".", ":") // which no name of a queue has
}

// route is where a message is published, and the delay for which it needs queues.
type route struct {
	exchange, key string
	units         uint64
}

// to is the way to a queue after a delay, and how long that is at least.
func (l *layout) to(queue string, delay time.Duration) (route, time.Duration) {
	switch {
	case delay <= 0:
		return route{exchange: l.deliver(), key: word(queue)}, 0
	case len(l.delays) > 0:
		d := l.delays[len(l.delays)-1]
		for _, longer := range l.delays {
			if longer >= delay-time.Millisecond { // by which a due time is rounded up
				d = longer
				break
			}
		}
		return route{exchange: l.fixed(d), key: word(queue)}, d
	}
	units := uint64((delay + l.unit - 1) / l.unit)
	units = min(units, 1<<l.levels-1)
	var key strings.Builder
	for left := units; left > 0; left >>= digitBits {
		key.WriteString(hex16(left % values))
		key.WriteByte('.')
	}
	key.WriteString(word(queue))
	return route{l.digit((bits.Len64(units) - 1) / digitBits), key.String(), units}, time.Duration(units) * l.unit
}

// longest is the longest delay.
func (l *layout) longest() time.Duration {
	if n := len(l.delays); n > 0 {
		return l.delays[n-1]
	}
	return (1<<l.levels - 1) * l.unit
}

// deliveries is how often a quorum queue delivers a message in vain before it gives it up.
// RabbitMQ 4 takes -1 for no limit, and 20 without this; before, any negative number is none at
// all, so one that all versions take for large is given.
const deliveries = 1 << 30

// arguments are those of a queue. It dead-letters to an exchange, if one is named, what has been
// in it for some time; 0: what a policy has it put out.
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

// declare makes what all queues have in common.
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
	for n := 0; n*digitBits < l.levels; n++ {
		d.exchange(l.digit(n), amqp.ExchangeTopic, l.parking())
		d.do(func() error { return ch.ExchangeBind(l.below(n), binding(n, 0), l.digit(n), true, nil) })
	}
	// The broker answers in order: when it has answered this it has done all.
	d.do(func() error {
		return ch.ExchangeDeclare(l.deliver(), amqp.ExchangeTopic, true, false, false, false, alternate(l.parking()))
	})
	return d.err
}

// below is where a message goes when a digit has been waited for.
func (l *layout) below(digit int) string {
	if digit == 0 {
		return l.deliver()
	}
	return l.digit(digit - 1)
}

// binding is of the routing keys with a value of a digit.
func binding(digit int, value uint64) string {
	return strings.Repeat("*.", digit) + hex16(value) + ".#"
}

// declareDelay makes a queue of a digit.
func (l *layout) declareDelay(ch *amqp.Channel, s stay) error {
	d := declarer{ch: ch}
	d.queue(l.delayQueue(s), l.arguments(s.units()*l.unit, l.below(s.digit)))
	d.do(func() error {
		return ch.QueueBind(l.delayQueue(s), binding(s.digit, s.value), l.digit(s.digit), false, nil)
	})
	return d.err
}

// declareWork makes the work queue of a queue.
func (l *layout) declareWork(ch *amqp.Channel, queue string) error {
	d := declarer{ch: ch}
	d.queue(l.workQueue(queue), l.arguments(0, l.parking()))
	d.do(func() error { return ch.QueueBind(l.workQueue(queue), "#."+word(queue), l.deliver(), false, nil) })
	return d.err
}

// declareDead makes the queue of the dead of a queue.
func (l *layout) declareDead(ch *amqp.Channel, queue string) error {
	d := declarer{ch: ch}
	d.queue(l.deadQueue(queue), l.arguments(0, l.parking()))
	d.do(func() error { return ch.QueueBind(l.deadQueue(queue), word(queue), l.dead(), false, nil) })
	return d.err
}

// declarer declares one thing after the other, up to the first that fails.
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
