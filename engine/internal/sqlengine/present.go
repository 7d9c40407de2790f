package sqlengine

import (
	"sync/atomic"
	"time"
)

// present is how far the database's clock is ahead of this process's, as last seen. It
// serves to guess what will be due there; what is due the database alone decides.
type present struct{ ahead atomic.Int64 }

// seen takes note of the database's time in the answer to what was sent at an instant.
func (p *present) seen(database, sent time.Time) { p.ahead.Store(int64(database.Sub(sent))) }

// estimate is what the engine's clock shows about now, in milliseconds: somewhat more rather
// than less.
func (e *Engine) estimate() int64 {
	return e.clock(time.Now().Add(time.Duration(e.present.ahead.Load()))).UnixMilli() + 1
}
