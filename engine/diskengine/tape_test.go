package diskengine_test

import (
	"encoding/hex"
	"fmt"
	"hash"
	"hash/fnv"
	"strings"
	"sync"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// tape is what was asked of a simulated disk: all of it as a sum, and the last calls.
type tape struct {
	mu   sync.Mutex
	sum  hash.Hash64
	last []string
	n    int
}

// lastCalls is how many calls of the disk are shown of a history that fails.
const lastCalls = 40

func newTape() *tape { return &tape{sum: fnv.New64a()} }

func (p *tape) note(c disktest.Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	said := fmt.Sprintf("%d %s %s", p.n, c.Op, c.Name)
	if c.Len > 0 {
		said += fmt.Sprintf(" at %d, %d bytes", c.Off, c.Len)
	}
	_, _ = fmt.Fprintln(p.sum, said)
	_, _ = p.sum.Write(c.Data)
	if len(p.last) == lastCalls {
		p.last = p.last[1:]
	}
	p.last = append(p.last, said)
}

// Sum is that of all calls.
func (p *tape) Sum() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(p.n, " ", hex.EncodeToString(p.sum.Sum(nil)))
}

// String is the last calls.
func (p *tape) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.last, "\n")
}
