package amqp_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	rabbit "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	"github.com/tarryhq/tarry/forward"
)

// BenchmarkSend compares Send with the bare client at the same concurrency: as many
// goroutines that each publish a persistent, mandatory message and await its confirm, over
// one connection, with a channel each. Rounds of both alternate. It reports Sends a second,
// and their share of what the bare client does.
func BenchmarkSend(b *testing.B) {
	at := rabbittest.Shared(b)
	setup := channelTo(b, at)
	declare(b, setup, "orders", nil)
	for _, clients := range []int{1, 16, 64} {
		b.Run(strconv.Itoa(clients), func(b *testing.B) {
			target, err := forward.Open(at, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer target.Close()
			bare := make([]*rabbit.Channel, 8)
			conn, err := rabbit.Dial(at)
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			for i := range bare {
				if bare[i], err = conn.Channel(); err != nil {
					b.Fatal(err)
				}
				if err := bare[i].Confirm(false); err != nil {
					b.Fatal(err)
				}
			}
			body := strings.Repeat("x", 200)
			m := message(1, body)
			ours := func(int) error { return target.Send(b.Context(), m) }
			theirs := func(i int) error {
				c, err := bare[i%len(bare)].PublishWithDeferredConfirm("", "orders", true, false, rabbit.Publishing{
					ContentType: "text/plain", DeliveryMode: rabbit.Persistent, MessageId: "1", Body: []byte(body),
				})
				if err == nil {
					c.Wait()
				}
				return err
			}
			round := func(n int, do func(i int) error) time.Duration {
				began := time.Now()
				var all sync.WaitGroup
				for i := range clients {
					all.Go(func() {
						for range n / clients {
							if err := do(i); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
				took := time.Since(began)
				if _, err := setup.QueuePurge("orders", false); err != nil {
					b.Fatal(err)
				}
				return took
			}
			round(clients*10, ours)
			round(clients*10, theirs)
			var a, z time.Duration
			n := 0
			for b.Loop() {
				each := max(clients, 100) * 10
				a += round(each, ours)
				z += round(each, theirs)
				n += each / clients * clients
			}
			b.ReportMetric(float64(n)/a.Seconds(), "sends/s")
			b.ReportMetric(float64(n)/z.Seconds(), "bare/s")
			b.ReportMetric(z.Seconds()/a.Seconds(), "of-bare")
			b.ReportMetric(0, "ns/op")
		})
	}
}
