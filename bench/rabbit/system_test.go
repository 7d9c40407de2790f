package rabbit

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/bench/scenario"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
)

func TestMain(m *testing.M) { os.Exit(rabbittest.Main(m).Run()) }

// system is one of those compared. Messages are numbers.
type system interface {
	// push has the broker hold a message back, and waits for its confirm.
	push(ctx context.Context, i int, delay time.Duration) error
	// work has messages handled. Each handler does no more than to call arrived.
	work(b *testing.B, arrived func(i int)) (stop func())
	close() error
}

// impl opens a system on an empty vhost.
type impl struct {
	name string
	open func(ctx context.Context, url string) (system, error)
	unit time.Duration // in which tarry counts delays; 0 for others
}

var impls = []impl{
	{name: "ttl-queue", open: openPlain(queuePerDelay)},
	{name: "message-ttl", open: openPlain(messageTTL)},
	{"tarry-10ms", openTarry("10ms"), 10 * time.Millisecond},
	{"tarry-100ms", openTarry("100ms"), 100 * time.Millisecond},
	{"tarry-1s", openTarry("1s"), time.Second},
}

// hops is how many queues hold a message back, one after the other.
func (i impl) hops(delay time.Duration) int {
	if i.unit == 0 {
		return 1
	}
	n := 0
	for units := (delay + i.unit - 1) / i.unit; units > 0; units >>= 4 {
		if units&0xf > 0 {
			n++
		}
	}
	return n
}

// compare runs a benchmark for each system, each on a vhost of its own of the same broker.
func compare(b *testing.B, run func(b *testing.B, i impl, s system)) {
	srv := rabbittest.Start(b, rabbittest.Settings("raft.wal_max_size_bytes = 536870912")) // as it is by default
	fmt.Println("rabbitmq:", version(b, srv.URL()))
	for _, i := range impls {
		b.Run("impl="+i.name, func(b *testing.B) {
			s, err := i.open(b.Context(), srv.Vhost())
			scenario.Must(b, err)
			defer func() { scenario.Must(b, s.close()) }()
			warm(b, s)
			run(b, i, s)
		})
	}
}

// warm has some messages go all the way.
func warm(b *testing.B, s system) {
	const n = 640
	a := newArrivals(n, time.Second)
	stop := s.work(b, a.arrived)
	defer stop()
	scenario.Each(b, scenario.Clients, n, 1, func(ctx context.Context, i, _ int) error { return a.push(ctx, s, i) })
	a.await(b)
}

func version(b *testing.B, url string) string {
	c, err := amqp.Dial(url)
	scenario.Must(b, err)
	defer c.Close()
	return fmt.Sprint(c.Properties["version"])
}

// body is that of message i, which it begins with.
func body(i int) []byte { return fmt.Appendf(nil, "%d %s", i, scenario.Body(i)) }

// index returns the i of a body.
func index(body []byte) int {
	text, _, _ := strings.Cut(string(body), " ")
	i, err := strconv.Atoi(text)
	if err != nil {
		panic("a message that was not pushed: " + text)
	}
	return i
}
