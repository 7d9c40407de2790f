package amqp

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	rabbit "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
)

// bench is a broker with an exchange to publish to and a quorum queue to consume from. Direct
// is the broker alone, else an intake and its route are between them.
type bench struct {
	b          *testing.B
	s          *rabbittest.Server
	at         string
	exchange   string
	ch         *rabbit.Channel
	deliveries <-chan rabbit.Delivery
}

func newBench(b *testing.B, direct bool) *bench {
	s := rabbittest.Start(b)
	x := &bench{b: b, s: s, at: s.URL(), exchange: "work"}
	x.ch = connected(b, x.at)
	declareQuorum(b, x.ch, "orders")
	err := x.ch.ExchangeDeclare("work", "topic", true, false, false, false, nil)
	if err == nil {
		err = x.ch.QueueBind("orders", "#", "work", false, nil)
	}
	if err != nil {
		b.Fatal(err)
	}
	if !direct {
		begin(b, "disk:"+b.TempDir(), delayed(b, x.at)).Runs()
		x.exchange = "delayed"
	}
	consumer := connected(b, x.at)
	if err := consumer.Qos(1000, 0, false); err != nil {
		b.Fatal(err)
	}
	if x.deliveries, err = consumer.Consume("orders", "", false, false, false, false, nil); err != nil {
		b.Fatal(err)
	}
	return x
}

// spent returns how much processor time the broker has used.
func (x *bench) spent() time.Duration {
	ms, err := strconv.Atoi(x.s.Eval("element(1, erlang:statistics(runtime))."))
	if err != nil {
		x.b.Fatal(err)
	}
	return time.Duration(ms) * time.Millisecond
}

func ownTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// publish sends a message that is due after a delay, and has that time in its body.
func (x *bench) publish(delay time.Duration) *rabbit.DeferredConfirmation {
	body := make([]byte, 256)
	binary.BigEndian.PutUint64(body, uint64(time.Now().Add(delay).UnixMicro()))
	c, err := x.ch.PublishWithDeferredConfirmWithContext(context.Background(), x.exchange, "order.due", true, false, rabbit.Publishing{
		DeliveryMode: rabbit.Persistent, Body: body, Headers: rabbit.Table{"x-delay": int32(delay.Milliseconds())}})
	if err != nil {
		x.b.Error(err)
	}
	return c
}

// consume acks n messages, a hundred at a time, and returns how late each came.
func (x *bench) consume(n int) (late []time.Duration) {
	for d := range x.deliveries {
		late = append(late, time.Since(time.UnixMicro(int64(binary.BigEndian.Uint64(d.Body)))))
		if len(late)%100 == 0 || len(late) == n {
			if err := d.Ack(true); err != nil {
				x.b.Error(err)
			}
		}
		if len(late) == n {
			break
		}
	}
	return late
}

// heapFloor is how much the heap grows at least between two collections, as that of the command
// tarry does: see docs/decisions/runtime.md.
const heapFloor = 16 << 20

// each runs f on the broker alone, and through an intake.
func each(b *testing.B, f func(b *testing.B, direct bool)) {
	floor := make([]byte, heapFloor)
	defer runtime.KeepAlive(floor)
	b.Run("broker", func(b *testing.B) { f(b, true) })
	b.Run("intake", func(b *testing.B) { f(b, false) })
}

// BenchmarkThroughput publishes with confirms, up to 1000 in flight, and consumes with acks.
func BenchmarkThroughput(b *testing.B) {
	each(b, func(b *testing.B, direct bool) {
		x := newBench(b, direct)
		before, own := x.spent(), ownTime()
		b.ResetTimer()
		go func() {
			inFlight := make(chan *rabbit.DeferredConfirmation, 1000)
			go func() {
				for c := range inFlight {
					c.Wait()
				}
			}()
			for range b.N {
				inFlight <- x.publish(0)
			}
			close(inFlight)
		}()
		x.consume(b.N)
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
		b.ReportMetric(float64((x.spent()-before).Microseconds())/float64(b.N), "broker-µs/op")
		b.ReportMetric(float64((ownTime()-own).Microseconds())/float64(b.N), "own-µs/op")
	})
}

// BenchmarkLateness publishes 1000 messages a second, through the intake with a delay of a
// second, and reports how late they come.
func BenchmarkLateness(b *testing.B) {
	each(b, func(b *testing.B, direct bool) {
		x := newBench(b, direct)
		delay := time.Second
		if direct {
			delay = 0
		}
		go func() {
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for range b.N {
				<-tick.C
				x.publish(delay)
			}
		}()
		late := x.consume(b.N)
		slices.Sort(late)
		b.ReportMetric(late[b.N/2].Seconds()*1000, "p50-ms")
		b.ReportMetric(late[b.N*99/100].Seconds()*1000, "p99-ms")
	})
}

// BenchmarkHeld has messages held for an hour, and reports the memory of broker and tarry.
func BenchmarkHeld(b *testing.B) {
	s := rabbittest.Start(b)
	broker, err := strconv.Atoi(strings.Trim(s.Eval("os:getpid()."), `"`))
	if err != nil {
		b.Fatal(err)
	}
	idle := resident(b, broker)
	_, _, tarry := startChild(b, newChild("disk:"+b.TempDir(), delayed(b, s.URL())))
	awaitConsumer(b, s.URL(), "tarry.delayed")
	x := &bench{b: b, exchange: "delayed", ch: connected(b, s.URL())}
	b.ResetTimer()
	inFlight := make(chan *rabbit.DeferredConfirmation, 1000)
	go func() {
		for range b.N {
			inFlight <- x.publish(time.Hour)
		}
		close(inFlight)
	}()
	for c := range inFlight {
		c.Wait()
	}
	awaitNone(b, s.URL(), "tarry.delayed")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
	b.ReportMetric(idle, "idle-broker-MB")
	b.ReportMetric(resident(b, broker), "broker-MB")
	b.ReportMetric(resident(b, tarry), "tarry-MB")
}

// resident returns the resident memory of a process in MB.
func resident(b *testing.B, pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		b.Skip(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		b.Fatal(err)
	}
	return float64(pages*os.Getpagesize()) / 1e6
}
