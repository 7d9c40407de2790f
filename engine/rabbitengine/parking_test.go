package rabbitengine

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
)

// A parked message that cannot be published delays no message that is parked later.
func TestParkedLaterIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	url := rabbittest.Shared(t)
	e := opened(t, url, Config{Queues: Quorum})
	s, ch := now(t, e), bare(t, url)
	send(t, ch, s.layout.parking(), "", amqp.Publishing{DeliveryMode: amqp.Persistent}) // without tarry's headers
	time.Sleep(parkedFor + 2*time.Second)                                               // it has been tried
	m, err := e.message(&engine.Message{Queue: "q"})
	ok(t, err)
	since := time.Now()
	send(t, ch, s.layout.parking(), "", publishing(m))
	leased(t, e, 1, 0)
	if took := time.Since(since); took > heldFor/2 {
		t.Errorf("it came after %v", took)
	}
}
