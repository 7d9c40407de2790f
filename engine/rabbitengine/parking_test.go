package rabbitengine

import (
	"log/slog"
	"strconv"
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

// However many queues are declared, the looks for parked messages do not wait for all of them.
func TestManyQueuesDelayNoLook(t *testing.T) {
	t.Parallel()
	e := opened(t, rabbittest.Shared(t), Config{Queues: Quorum, Logger: slog.New(slog.DiscardHandler)})
	s := now(t, e)
	s.mu.Lock()
	for n := range 50_000 {
		s.declared[brokerQueue{queue: strconv.Itoa(n)}] = time.Time{}
	}
	s.mu.Unlock()
	since := time.Now()
	s.missQueues(e.cfg.Logger)
	if took := time.Since(since); took > parkedFor {
		t.Errorf("it took %v", took)
	}
}
