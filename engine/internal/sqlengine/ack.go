package sqlengine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/token"
)

// ack carries out those of settlements that are acks of leases which hold, as most are,
// without reading the messages. Their tokens become zero. It reports whether there were some.
func (e *Engine) ack(ctx context.Context, s []engine.Settlement, tokens []token.Token, settled []engine.Settled, p Patience) (some bool, err error) {
	_, latest, fresh := e.span()
	if e.cfg.later != nil || !fresh {
		return false, nil
	}
	var acks []token.Token
	var queues []int64
	times := make(map[engine.ID]int, len(s))
	for _, t := range tokens {
		times[t.ID]++
	}
	for i, t := range tokens {
		if s[i].Do == engine.Ack && t.ID != 0 && times[t.ID] == 1 {
			acks, queues = append(acks, t), append(queues, int64(t.Queue))
		}
	}
	if acks == nil || e.seen.plain(sorted(queues), boundsFlight) == nil {
		return false, nil
	}
	slices.SortFunc(acks, func(a, b token.Token) int { return cmp.Compare(a.ID, b.ID) })
	start := time.Now()
	gone, err := e.store.Ack(ctx, acks, latest.UnixMilli(), p)
	e.measured.observe(start, err)
	if err != nil {
		if errors.Is(err, ErrAgain) && (p == Endless || !errors.Is(err, ErrBusy)) {
			err = nil
		}
		return false, err
	}
	e.fold(len(gone))
	slices.Sort(gone)
	for i := range tokens {
		if _, ok := slices.BinarySearch(gone, tokens[i].ID); ok {
			settled[i], tokens[i] = engine.Settled{State: engine.Gone}, token.Token{}
		}
	}
	return len(gone) > 0, nil
}
