package rabbitengine

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// idBits are the low bits of an id. They are random per engine, so that engines are unlikely
// to make the same id. The bits above are milliseconds since idsBegin, and may run ahead.
const idBits = 22

var idsBegin = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// ids makes increasing ids.
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
