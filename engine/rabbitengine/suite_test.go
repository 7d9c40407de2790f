package rabbitengine

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	"github.com/tarryhq/tarry/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(rabbittest.Main(m)) }

func TestSuite(t *testing.T) {
	t.Parallel()
	for queues, parts := range map[QueueType][]string{
		Quorum: nil,
		// What the broker does otherwise for queues that are not replicated.
		Classic: {"Push", "LeaseOrder", "LeaseDue", "Lapse", "Settle", "Redrive", "Race", "Cut"},
	} {
		t.Run(string(queues), func(t *testing.T) {
			t.Parallel()
			url := rabbittest.Shared(t)
			enginetest.Run(t, enginetest.Harness{Parts: parts, Open: func(t *testing.T) engine.Engine {
				// Of what has lapsed and is given back no late ack is taken: slow machines need longer.
				e, err := open(url, amqp.Config{Heartbeat: 30 * time.Second}, &Config{Queues: queues, Prefix: string(queues), Unit: 50 * time.Millisecond, idleAfter: 10 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				return e
			}})
		})
	}
}
