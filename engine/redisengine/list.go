package redisengine

import (
	"context"
	"slices"
	"strconv"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/internal/calls"
)

// List returns a page of the messages of a queue in one state. It asks all shards for ids,
// and then fetches the messages that are first.
func (e *Engine) List(ctx context.Context, lq engine.ListQuery) (engine.Page, error) {
	if err := e.calls.Enter(ctx, "list"); err != nil {
		return engine.Page{}, err
	}
	defer e.calls.Leave()
	if err := lq.Check(); err != nil {
		return engine.Page{}, err
	}
	span, err := codec.SpanOf(&lq)
	if err != nil {
		return engine.Page{}, err
	}
	q := e.queue(lq.Queue)
	places, err := e.places(ctx, q, lq.State, span, lq.Newest, lq.Limit+1)
	if err != nil {
		return engine.Page{}, fault("list", lq.Queue, err)
	}
	found, short, err := e.fetch(ctx, q, lq.State, places[:min(len(places), lq.Limit)], lq.Body)
	if err != nil {
		return engine.Page{}, fault("list", lq.Queue, err)
	}
	page := engine.Page{}
	bytes := 0
	for n, p := range places {
		if n == lq.Limit || short[n] || bytes >= engine.AnswerBytes {
			// Even if none of these messages can be shown, the list continues after them.
			page.Next = places[n-1].Cursor(&lq)
			break
		}
		if i, ok := found[p.ID]; ok {
			page.Messages = append(page.Messages, i)
			bytes += len(i.Body)
		}
	}
	return page, nil
}

// places asks all shards of a queue for the places of a span in a state. It returns the
// first of them in order, or in reverse order.
func (e *Engine) places(ctx context.Context, q *queue, state engine.State, span codec.Span, newest bool, limit int) ([]codec.Place, error) {
	mode, compare := "", codec.Place.Compare
	if newest {
		mode, compare = "newest", func(a, b codec.Place) int { return b.Compare(a) }
	}
	args := append(append([]string{state.String()}, placeArgs(span.Low)...), placeArgs(span.High)...)
	var all []codec.Place
	err := e.eachShard(ctx, q.shards, listScript, append(args, strconv.Itoa(limit), mode), func(n int, a answer) error {
		for i := 1; i+2 <= len(a.values); i += 2 {
			at, err := a.values[i].AsInt64()
			if err != nil {
				return errAnswer
			}
			id, err := readID(&a.values[i+1])
			if err == nil && shardOf(id) != n {
				err = errAnswer
			}
			if err != nil {
				return err
			}
			all = append(all, codec.Place{At: at, ID: id})
		}
		return nil
	})
	slices.SortFunc(all, compare)
	return all[:min(len(all), limit)], err
}

// placeArgs returns a place as script arguments.
func placeArgs(p codec.Place) []string {
	at, id := strconv.FormatInt(p.At, 10), ""
	switch {
	case p == codec.WholeList.Low:
		at = "-inf"
	case p == codec.WholeList.High:
		at = "+inf"
	case p.ID != 0:
		id = member(p.ID)
	}
	return []string{at, id}
}

// fetch reads the messages at places. short is set for a place that its shard left out
// because the answer had reached AnswerBytes.
func (e *Engine) fetch(ctx context.Context, q *queue, state engine.State, places []codec.Place, whole bool) (found map[engine.ID]engine.Info, short map[int]bool, err error) {
	mode := ""
	if whole {
		mode = "whole"
	}
	var reqs []request
	var asked [][]int
	for s, which := range calls.GroupBy(len(places), func(n int) int { return shardOf(places[n].ID) }) {
		args := with(stateArg(state), mode, strconv.Itoa(engine.AnswerBytes))
		for _, n := range which {
			args = append(args, member(places[n].ID))
		}
		reqs, asked = append(reqs, request{script: fetchScript, shard: q.shards[s], args: args}), append(asked, which)
	}
	found, short = make(map[engine.ID]engine.Info), make(map[int]bool)
	for k, a := range e.ask(ctx, reqs, e.patient()) {
		if a.err != nil {
			return nil, nil, a.err
		}
		for j, n := range asked[k] {
			if 4*j+4 > len(a.values) {
				short[n] = true
				continue
			}
			values := a.values[4*j : 4*j+4]
			if text, err := values[1].ToString(); err == nil && text == "" {
				continue // no longer in that state
			}
			var i engine.Info
			if state == engine.Finished {
				i, err = readEntry(q.name, places[n].ID, &values[1])
			} else {
				i, _, err = readMessage(q.name, values, a.now)
			}
			if err != nil {
				return nil, nil, err
			}
			if !whole {
				i.Body = nil
			}
			found[places[n].ID] = i
		}
	}
	return found, short, nil
}

// eachShard runs a script on shards and passes each answer to do; it ends with the first error.
func (e *Engine) eachShard(ctx context.Context, shards []*shard, sc *script, args []string, do func(n int, a answer) error) error {
	return e.eachAnswer(ctx, shards, sc, args, func(n int, a answer) error {
		if a.err != nil {
			return a.err
		}
		return do(n, a)
	})
}

// eachAnswer runs a script on shards and passes each answer to do, also one that is an error.
// It repeats the script on a shard if the first value of the answer says that it has more to
// sweep.
func (e *Engine) eachAnswer(ctx context.Context, shards []*shard, sc *script, args []string, do func(n int, a answer) error) error {
	left := make([]int, len(shards))
	for n := range left {
		left[n] = n
	}
	for len(left) > 0 {
		reqs := make([]request, len(left))
		for i, n := range left {
			reqs[i] = request{script: sc, shard: shards[n], args: with(args...)}
		}
		var again []int
		for i, a := range e.ask(ctx, reqs, e.patient()) {
			if a.err == nil && len(a.values) == 0 {
				a.err = errAnswer
			}
			var busy int64
			if a.err == nil {
				busy, _ = a.values[0].AsInt64()
			}
			if busy != 0 {
				again = append(again, left[i])
			} else if err := do(left[i], a); err != nil {
				return err
			}
		}
		left = again
	}
	return nil
}
