package diskengine

import (
	"context"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/recent"
	"github.com/tarryhq/tarry/engine/internal/gate"
)

// A push of large bodies takes their bytes twice, in the window of recent messages and in the log until
// that is written; so does one that keeps large bodies of others, which is let in for them once it has met
// them. Such pushes are let in one after the other, in the order in which they come, while
// those under way have no more bytes than a quarter of Config.MemoryBytes together, or one of them is
// alone. So what they take beside that memory is at most as much again, or twice the largest.
const (
	largePush = recent.Long // bytes of bodies and headers from which a push is large
	largePart = 4
)

// enter waits until a push of so many bytes is let in. leave is called when it has ended; Close waits
// until then.
func (e *Engine) enter(ctx context.Context, bytes int) (leave func(), err error) {
	if bytes <= largePush {
		return func() {}, nil
	}
	if err := e.calls.Enter(ctx, "push"); err != nil {
		return nil, err
	}
	n := min(int64(bytes), e.cfg.MemoryBytes/largePart)
	if !e.bodies.TryAcquire(n) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(e.life, stop)()
		if err := e.bodies.Acquire(ctx, n); err != nil {
			e.calls.Leave()
			if e.life.Err() != nil {
				return nil, gate.Closed("push")
			}
			return nil, behind(ctx, err)
		}
	}
	return func() {
		e.bodies.Release(n)
		e.ease()
		e.calls.Leave()
	}, nil
}

// ease lets those look again who wait for room in windows, where one that was put together beside may
// be gone.
func (e *Engine) ease() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.keeper.drew()
}

// borrow is where the body of a large push is put for the log.
func (e *Engine) borrow(bytes int) (b []byte, give func()) {
	b = e.recent.Borrow(bytes)
	return b, func() { e.recent.GiveBack(b) }
}

// contentBytes is how many bytes the bodies of messages have, and their headers.
func contentBytes(msgs []engine.Message) (n int) {
	for i := range msgs {
		m := &msgs[i]
		n += len(m.Body) + len(m.ContentType)
		for _, h := range m.Headers {
			n += len(h.Name) + len(h.Value)
		}
	}
	return n
}
