package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tarryhq/tarry"
)

const (
	// deadChunk is how many dead messages are pushed to TO at a time, before they are buried.
	deadChunk = 100

	// deadWait bounds the time to bury a chunk. An interrupted copy still takes it: a message
	// that is dead in FROM must not stay alive in TO.
	deadWait = 10 * time.Second
)

// bury copies the dead messages, the longest dead first. It pushes, leases and buries each
// with its last error. The queue must hold nothing in TO. So nothing else can be leased, and
// no earlier copy has left some of them.
func (q *queueCopy) bury(ctx context.Context) error {
	from, err := q.from.Queue(ctx, q.name)
	if err != nil || from.Dead == 0 || !q.flags.dead {
		return err
	}
	if q.to != nil {
		if !q.to.Capabilities().Count {
			return nil
		}
		to, err := q.to.Queue(ctx, q.name)
		if err != nil || to.Paused || to.Scheduled+to.Ready+to.Leased+to.Dead > 0 {
			return err
		}
	}
	if q.flags.dryRun {
		q.Buried = from.Dead
		return nil
	}
	query := tarry.ListQuery{Queue: q.name, State: tarry.Dead, Limit: deadChunk, Body: true}
	for {
		page, err := q.from.ListPage(ctx, query)
		if err != nil {
			return err
		}
		for rest := page.Messages; len(rest) > 0; {
			n := distinctKeys(rest)
			if err := q.buryChunk(ctx, rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		if query.After = page.Next; page.Next == "" {
			return nil
		}
		q.note.say("%s: %d dead copied", q.name, q.Buried)
	}
}

// distinctKeys returns how many of the first messages have different keys, as live messages
// must.
func distinctKeys(all []tarry.Info) int {
	keys := make(map[string]bool)
	for i := range all {
		if key := all[i].Key; key != "" && keys[key] {
			return i
		} else if key != "" {
			keys[key] = true
		}
	}
	return len(all)
}

// buryChunk pushes dead messages to TO and buries them there.
func (q *queueCopy) buryChunk(ctx context.Context, dead []tarry.Info) error {
	drafts := make([]tarry.Draft, len(dead))
	for i := range dead {
		m := &dead[i]
		drafts[i] = tarry.Draft{Queue: m.Queue, Key: m.Key, Due: tarry.When{At: m.Due}, Content: m.Content, Terms: m.Policy.Terms()}
		drafts[i].ExpireAfter = tarry.Never // else it could expire before it is buried
		q.strip(&drafts[i])
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadWait)
	defer cancel()
	pushed, err := q.to.PushMany(ctx, drafts)
	if err != nil {
		return notBuried(q.name, len(drafts), err)
	}
	var full error
	places, born := make(map[tarry.ID]int), 0
	for i := range pushed {
		switch err := pushed[i].Err; {
		case stops(err):
			full = err
		case err != nil:
			q.Refused++
			q.refused = cmp.Or(q.refused, err)
		default:
			places[pushed[i].ID] = i
			born++
		}
	}
	burials := make([]tarry.Settlement, len(drafts)) // in the order in which they died
	for len(places) > 0 {
		got, err := q.to.Lease(ctx, tarry.LeaseRequest{Queues: []string{q.name}, Max: len(places), Wait: deadWait, LeaseOptions: tarry.LeaseOptions{TTR: time.Minute}})
		if err != nil || len(got.Messages) == 0 {
			return notBuried(q.name, born, err)
		}
		for i := range got.Messages {
			m := &got.Messages[i]
			place, ours := places[m.ID]
			if !ours { // another client has just pushed it
				_, err := q.to.Settle(ctx, []tarry.Settlement{{Token: m.Token, Do: tarry.DoRelease}})
				return notBuried(q.name, born, err)
			}
			burials[place] = tarry.Settlement{Token: m.Token, Do: tarry.DoBury, Reason: dead[place].LastError}
			delete(places, m.ID)
		}
	}
	settled, err := q.to.Settle(ctx, slices.DeleteFunc(burials, func(s tarry.Settlement) bool { return s.Token == "" }))
	if err != nil {
		return notBuried(q.name, born, err)
	}
	for i := range settled {
		if settled[i].Err != nil {
			return notBuried(q.name, born-i, settled[i].Err)
		}
		q.Buried++
	}
	return full
}

// notBuried returns the error of a chunk that could not be buried.
func notBuried(queue string, n int, err error) error {
	what := fmt.Sprintf("up to %s of %s, dead in FROM, may be alive in TO", counted(n, "message"), queue)
	hint := "purge the queue there, before anybody works on it; somebody else may lease from it, or its settings hold leases back"
	if err != nil {
		what += ": " + err.Error()
	}
	return failedf(err, hint, "%s", what)
}
