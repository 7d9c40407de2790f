//go:build linux

package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/bench/scenario"
)

// reopen opens the store of -dir, whose process was killed, until a message that is pushed
// then is handed out; looks for the messages that were pushed before; and tells what the
// store takes while nothing happens, unless -span is 0.
func reopen(b *testing.B) {
	scenario.Once(b)
	if *dir == "" {
		b.Skip("-dir names no directory")
	}
	began := time.Now()
	c, err := openClient(b.Context(), *dir)
	must(b, err)
	defer func() { must(b, c.Close()) }()
	must(b, serves(b.Context(), c))
	scenario.Report(b, time.Since(began).Seconds(), "reopen-s")
	reportMemory(b)
	began = time.Now()
	missing, err := lookFor(b.Context(), c, *scenario.Pending)
	must(b, err)
	scenario.Report(b, float64(missing), "missing")
	scenario.Report(b, time.Since(began).Seconds(), "look-s")
	if *scenario.Span > 0 {
		scenario.Idle(b, scenario.Tarry(c))
		now, _ := memory(b)
		scenario.Report(b, float64(now)/1e6, "idle-rss-MB")
	}
}

// serves pushes a message that is due and takes it.
func serves(ctx context.Context, c *tarry.Client) error {
	const queue = "probe"
	if _, err := c.Push(ctx, queue, nil, tarry.In(0)); err != nil {
		return err
	}
	got, err := c.Lease(ctx, tarry.LeaseRequest{Queues: []string{queue}, Max: 1, Wait: time.Minute})
	if err != nil {
		return err
	}
	if len(got.Messages) != 1 {
		return errors.New("the store is open, but hands out nothing that is due")
	}
	_, err = c.Settle(ctx, []tarry.Settlement{{Token: got.Messages[0].Token, Do: tarry.DoAck}})
	return err
}

// lookFor returns how many of n messages are missing: as the store counts them, and as they
// are found, each of them in the lists or, without -count, 10,000 by their keys; the greater
// number of the two.
func lookFor(ctx context.Context, c *tarry.Client, n int) (missing int, err error) {
	q, err := c.Queue(ctx, scenario.Queue)
	if err != nil {
		return 0, err
	}
	look := lookFew
	if *countAll {
		look = lookAll
	}
	missing, err = look(ctx, c, n)
	return max(missing, n-int(q.Scheduled+q.Ready)), err
}

func lookFew(ctx context.Context, c *tarry.Client, n int) (missing int, err error) {
	at := scenario.Leaps(n)
	for i := range min(n, 10_000) {
		_, err := c.Get(ctx, tarry.ByKey(scenario.Key(*first+at(i))).Of(scenario.Queue))
		switch {
		case errors.Is(err, tarry.ErrNotFound):
			missing++
		case err != nil:
			return 0, err
		}
	}
	return missing, nil
}

// lookAll reads all lists, and takes no count of the store's for it: a slice of time after the other,
// as many beside one another as there are processors.
func lookAll(ctx context.Context, c *tarry.Client, n int) (missing int, err error) {
	const slice = 6 * time.Hour
	edges := make([]time.Time, 1)
	for from := time.Now().Truncate(slice); len(edges) < int((hugeLead+hugeSpread)/slice); from = from.Add(slice) {
		edges = append(edges, from)
	}
	edges = append(edges, time.Time{})
	found := newMarks(n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, to := range edges[1:] {
		for _, state := range []tarry.State{tarry.Scheduled, tarry.Ready} {
			q := tarry.ListQuery{Queue: scenario.Queue, State: state, From: edges[i], To: to, Limit: 1000}
			group.Go(func() error { return found.read(ctx, c, q) })
		}
	}
	err = group.Wait()
	return n - int(found.n.Load()), err
}

// marks are a bit for each message, and how many are set.
type marks struct {
	bits []uint64
	size int
	n    atomic.Int64
}

func newMarks(n int) *marks { return &marks{bits: make([]uint64, (n+63)/64), size: n} }

// set sets bit i; false: it was.
func (m *marks) set(i int) bool {
	bit := uint64(1) << (i % 64)
	if atomic.OrUint64(&m.bits[i/64], bit)&bit != 0 {
		return false
	}
	if n := m.n.Add(1); n%1_000_000 == 0 {
		fmt.Fprintf(os.Stderr, "%d of %d found\n", n, m.size)
	}
	return true
}

// read sets the bits of the messages in a list.
func (m *marks) read(ctx context.Context, c *tarry.Client, q tarry.ListQuery) error {
	for {
		page, err := c.ListPage(ctx, q)
		if err != nil {
			return err
		}
		for _, x := range page.Messages {
			if i := scenario.Index(x.Key) - *first; i < 0 || i >= m.size {
				return fmt.Errorf("the store holds %s, which was not pushed", x.Key)
			} else if !m.set(i) {
				return fmt.Errorf("the store holds %s twice", x.Key)
			}
		}
		if q.After = page.Next; page.Next == "" {
			return nil
		}
	}
}

// late measures lateness in the store of -dir beside what pends there.
func late(b *testing.B) {
	if *dir == "" {
		b.Skip("-dir names no directory")
	}
	scenario.Lateness(b, func(b *testing.B) scenario.System {
		c, err := openClient(b.Context(), *dir)
		must(b, err)
		b.Cleanup(func() { must(b, c.Close()) })
		return among{scenario.Tarry(c), c}
	})
	reportMemory(b)
}

// among is a System in whose queue others pend.
type among struct {
	scenario.System
	client *tarry.Client
}

// Empty says whether nothing is left of what has fallen due.
func (s among) Empty(ctx context.Context, queue string) (bool, error) {
	q, err := s.client.Queue(ctx, queue)
	return q.Ready+q.Leased+q.Dead == 0, err
}
