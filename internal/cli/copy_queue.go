package cli

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/tarryhq/tarry"
)

// copyPage is how many messages are read and pushed at a time.
const copyPage = 500

// queueCopy copies one queue.
type queueCopy struct {
	*copier
	copied
	name string
}

// run copies the queue, and counts what is left. Dead messages come first, while nothing else
// can be leased. The pause comes next, so that no message is leased during it. Settings come
// last, since FROM may hold more messages than its max_pending now allows.
func (q *queueCopy) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{q.bury, q.pause, q.messages, q.configure} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	n, err := q.from.Queue(ctx, q.name)
	q.Leased, q.Dead, q.Finished, q.History = n.Leased, max(0, n.Dead-q.Buried), n.Finished, n.History
	return err
}

// messages copies the scheduled messages, the latest due first, and then the ready ones. So a
// message that falls due meanwhile is copied exactly once. The scheduled ones are read down to
// the present. Of the ready ones only those due before the last scheduled one are read.
func (q *queueCopy) messages(ctx context.Context) error {
	var last *tarry.Info
	err := q.list(ctx, tarry.ListQuery{State: tarry.Scheduled, Newest: true}, func(page []tarry.Info) []tarry.Info {
		last = &tarry.Info{ID: page[len(page)-1].ID, Due: page[len(page)-1].Due}
		slices.Reverse(page) // of messages due together, the first pushed must stay first
		return page
	})
	if err != nil {
		return err
	}
	ready := tarry.ListQuery{State: tarry.Ready}
	if last != nil {
		ready.To = last.Due.Add(time.Millisecond)
	}
	return q.list(ctx, ready, func(page []tarry.Info) []tarry.Info {
		return slices.DeleteFunc(page, func(m tarry.Info) bool {
			return last != nil && m.Due.Equal(last.Due) && m.ID >= last.ID
		})
	})
}

// list copies the messages of a query, page by page, as arranged.
func (q *queueCopy) list(ctx context.Context, query tarry.ListQuery, arrange func([]tarry.Info) []tarry.Info) error {
	query.Queue, query.Limit, query.Body = q.name, copyPage, !q.flags.dryRun
	for {
		page, err := q.from.ListPage(ctx, query)
		if err != nil {
			return err
		}
		if len(page.Messages) > 0 {
			if err := q.keep(ctx, arrange(page.Messages)); err != nil {
				return err
			}
		}
		if query.After = page.Next; page.Next == "" {
			return nil
		}
		q.note.say("%s: %d copied, %d kept", q.name, q.Copied, q.Kept)
	}
}

// keep pushes the messages of a page.
func (q *queueCopy) keep(ctx context.Context, page []tarry.Info) error {
	type fate struct{ stripped, begun bool }
	var (
		drafts = make([]tarry.Draft, 0, len(page))
		fates  = make([]fate, 0, len(page))
	)
	for i := range page {
		m, ok := draftOf(&page[i])
		if !ok {
			q.Expired++
			continue
		}
		drafts = append(drafts, m)
		fates = append(fates, fate{q.strip(&drafts[len(drafts)-1]), page[i].Attempt > 0})
	}
	pushed := make([]tarry.Pushed, len(drafts)) // a dry run counts all as created
	if !q.flags.dryRun && len(drafts) > 0 {
		var err error
		if pushed, err = q.to.PushMany(ctx, drafts); err != nil {
			return err
		}
	}
	var full error
	for i := range pushed {
		switch err := pushed[i].Err; {
		case stops(err):
			full = cmp.Or(full, err)
		case err != nil:
			q.Refused++
			q.refused = cmp.Or(q.refused, err)
		case pushed[i].Outcome == tarry.Kept:
			q.Kept++
		default:
			q.Copied++
			q.Unkeyed += one(drafts[i].Key == "")
			q.Begun += one(fates[i].begun)
			q.Stripped += one(fates[i].stripped)
		}
	}
	return full
}

func one(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// stops reports whether the error of one message would meet the next one too.
func stops(err error) bool {
	return errors.Is(err, tarry.ErrLimit) || errors.Is(err, tarry.ErrUnavailable) || errors.Is(err, tarry.ErrClosed) ||
		errors.Is(err, tarry.ErrUnauthorized) || errors.Is(err, tarry.ErrForbidden) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// draftOf returns the push that makes a message like m; false: it expires before it is due.
func draftOf(m *tarry.Info) (tarry.Draft, bool) {
	terms := m.Policy.Terms()
	if !m.Expires.IsZero() { // a retry moves the due time but not the expiry
		if terms.ExpireAfter = m.Expires.Sub(m.Due); terms.ExpireAfter <= 0 {
			return tarry.Draft{}, false
		}
	}
	d := tarry.Draft{Queue: m.Queue, Key: m.Key, Due: tarry.When{At: m.Due}, Content: m.Content, Terms: terms}
	if d.Key != "" {
		d.OnConflict = tarry.Keep
	}
	return d, true
}

// pause pauses the queue in TO for the rest of its pause in FROM.
func (q *queueCopy) pause(ctx context.Context) error {
	info, err := q.from.Queue(ctx, q.name)
	if err != nil || !info.Paused {
		return err
	}
	left := time.Duration(0)
	if !info.PausedUntil.IsZero() {
		if left = info.PausedUntil.Sub(q.p.Now()); left <= 0 {
			return nil
		}
	}
	switch {
	case !q.flags.pauses || q.to != nil && !q.to.Capabilities().Pause:
		q.Pause = "left"
		return nil
	case q.to != nil:
		there, err := q.to.Queue(ctx, q.name)
		if err != nil {
			return err
		}
		if there.Paused {
			q.Pause = "kept"
			return nil
		}
	}
	if !q.flags.dryRun {
		err = q.to.Pause(ctx, q.name, left)
	}
	if err == nil {
		q.Pause = "copied"
	}
	return err
}

// configure gives the queue in TO its settings from FROM, unless it has some.
func (q *queueCopy) configure(ctx context.Context) error {
	if !q.from.Capabilities().Settings {
		return nil
	}
	s, _, err := q.from.Settings(ctx, q.name)
	if err != nil || s.Unset() {
		return err
	}
	if !q.flags.settings || q.to != nil && !q.to.Capabilities().Settings {
		q.Settings = "left"
		return nil
	}
	revision := ""
	if q.to != nil {
		var there tarry.Settings
		if there, revision, err = q.to.Settings(ctx, q.name); err != nil {
			return err
		}
		if !there.Unset() {
			if q.Settings = "kept"; reflect.DeepEqual(there, s) {
				q.Settings = "copied" // by an earlier copy that this one continues
			}
			return nil
		}
		stripTerms(&s.Defaults, q.to.Capabilities())
	}
	if !q.flags.dryRun {
		_, err = q.to.Configure(ctx, q.name, s, revision)
	}
	if err == nil {
		q.Settings = "copied"
	}
	return err
}
