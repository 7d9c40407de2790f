package rabbitengine

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
)

// idBits are the low bits of an id, random in each engine, so that several engines hardly
// ever make the same one; above them are milliseconds since idsBegin, which may run ahead.
const idBits = 22

var idsBegin = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// ids makes ids that grow.
type ids struct {
	mu   sync.Mutex
	node uint64
	last uint64
}

func newIDs() *ids { return &ids{node: rand.Uint64N(1 << idBits)} }

func (i *ids) next() engine.ID {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last = max(i.last+1, uint64(max(1, time.Now().UnixMilli()-idsBegin)))
	return engine.ID(i.last<<idBits | i.node)
}

func sortedNames(h amqp.Table) []string { return slices.Sorted(maps.Keys(h)) }
