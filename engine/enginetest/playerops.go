package enginetest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
)

func (p *player) push(msgs []engine.Message, atomic bool) {
	for _, m := range msgs {
		p.logf("push key %q to %s, due %v, %v, %v (atomic %v, leased %v)", m.Key, m.Queue, m.Due, m.OnConflict, said(m.Terms), atomic, m.Token != "")
	}
	push, model := p.e.Push, p.m.Push
	if atomic {
		push, model = p.e.(engine.AtomicPusher).PushAtomic, p.m.PushAtomic
	}
	got, err := push(p.caller, msgs)
	if p.fault != nil && p.fault.Anywhere {
		msgs, got = withoutFailed(msgs, got)
	}
	p.m.nextIDs = nil
	for i, r := range got {
		if r.Outcome == engine.Created && r.Err == nil && i < len(msgs) {
			p.m.nextIDs = append(p.m.nextIDs, r.ID)
			p.ids = append(p.ids, r.ID)
			p.queueOf[r.ID] = msgs[i].Queue
		}
	}
	// It is open whether expired messages are counted.
	p.m.refused = func(i int, queue string, room int64) bool {
		return i < len(got) && engine.Code(got[i].Err) == "limit" && p.unswept(queue) >= room
	}
	want, wantErr := model(p.ctx, p.modelled(msgs))
	p.m.refused = nil
	p.hear(err)
	for _, r := range got {
		p.hear(r.Err)
	}
	if engine.Code(err) != engine.Code(wantErr) || err == nil && len(got) != len(want) {
		p.failf("push: error %v, %d results; want %v, %d", err, len(got), wantErr, len(want))
	}
	if err != nil {
		return
	}
	for i, w := range want {
		g := got[i]
		if g.Outcome != w.Outcome || g.ID != w.ID || g.State != w.State || !p.near(g.Due, w.Due) || engine.Code(g.Err) != engine.Code(w.Err) ||
			g.Ending != w.Ending || !p.near(g.Ended, w.Ended) {
			p.failf("push: %+v, want %+v", g, w)
		}
	}
}

// withoutFailed returns the messages and answers of a push without those that failed, which
// changed nothing.
func withoutFailed(msgs []engine.Message, got []engine.PushResult) (asked []engine.Message, answered []engine.PushResult) {
	if len(got) != len(msgs) {
		return msgs, got
	}
	for i, r := range got {
		if engine.Code(r.Err) != "unavailable" {
			asked, answered = append(asked, msgs[i]), append(answered, r)
		}
	}
	return asked, answered
}

func (p *player) lease(wants []engine.Want) {
	p.logf("lease %+v", wants)
	got, err := p.e.Lease(p.caller, wants)
	if len(got.Queues) == len(wants) {
		p.m.granted = &got
	}
	want, _ := p.m.Lease(p.ctx, wants)
	p.m.granted = nil
	p.hear(err)
	for _, g := range got.Queues {
		p.hear(g.Err)
	}
	if err != nil || len(got.Queues) != len(wants) {
		p.failf("lease: %v, %+v", err, got)
		return
	}
	for i, w := range want.Queues {
		g := got.Queues[i]
		queue := wants[i].Queue
		ghosts := len(p.ghosts(queue)) > 0
		if problem := p.b.checkGrant(got.Now, wants[i], g); problem != "" || g.Err != nil {
			p.failf("lease of %s: %s%v", queue, problem, g.Err)
		}
		if !slices.Equal(leaseIDs(g.Messages), leaseIDs(w.Messages)) {
			p.failf("lease of %s: ids %v, want %v", queue, leaseIDs(g.Messages), leaseIDs(w.Messages))
			return
		}
		for j, l := range w.Messages {
			p.compare("leased", g.Messages[j].Info, l.Info)
			p.leases = append(p.leases, heldLease{g.Messages[j].Token, l.Token, l.ID, l.Key})
		}
		if g.More != w.More && !(ghosts && g.More) {
			p.failf("lease of %s: more is %v, not %v", queue, g.More, w.More)
		}
		if g.Held != w.Held && !(ghosts && g.Held) {
			p.failf("lease of %s: held is %v, not %v", queue, g.Held, w.Held)
		}
		if !g.More && !w.NextDue.IsZero() && (g.NextDue.IsZero() || g.NextDue.After(w.NextDue) && !p.near(g.NextDue, w.NextDue)) {
			p.failf("lease of %s: NextDue %v is later than %v", queue, g.NextDue, w.NextDue)
		}
		_, paused := p.m.paused(queue, p.now)
		if !paused {
			p.m.met[queue] = slack{p.m.faded[queue], p.m.culled[queue]}
		}
		if !paused && !g.More && !g.Held {
			for id, g := range p.m.ghosts {
				p.swept[id] = p.swept[id] || g.queue == queue && !g.due.After(p.now)
			}
		}
	}
}

// refresh makes the model drop expired messages.
func (p *player) refresh() {
	if _, err := p.m.begin(p.ctx, "refresh"); err == nil {
		p.m.mu.Unlock()
	}
}

func (p *player) settle(n []uint32) {
	if len(p.leases) == 0 {
		return
	}
	var to, model []engine.Settlement
	for i := range 1 + n[0]%2 {
		l, _ := p.recent(n[1] + 7*i)
		when := p.when(n[3], n[4])
		s := engine.Settlement{Do: engine.Ack + engine.Action((n[2]+i)%6), When: &when, TTR: p.ttr(n[5]), Reason: fmt.Sprint("reason ", n[5])}
		if s.Do == engine.Retry && n[4]%2 == 0 {
			s.When = nil
		}
		if p.caps.Reprioritize && n[6]%2 == 0 {
			s.Priority = new(pick([]uint32{0, 7, engine.DefaultPriority, math.MaxUint32}, n[6]>>1))
		}
		if n[5]%5 == 0 { // too long, and cut in the middle of a character
			s.Reason += strings.Repeat("é", engine.MaxReason)
		}
		if s.Do == engine.Extend && n[5]%3 == 0 {
			s.TTR = 0
		}
		if s.Do == engine.Extend && !p.caps.Extend || (s.Do == engine.Snooze || s.Do == engine.Release) && !p.caps.GiveBack {
			continue
		}
		p.logf("settle id %v, action %d, when %v, ttr %v, priority %s", l.id, s.Do, when, s.TTR, saidPriority(s.Priority))
		s.Token = l.engine
		to = append(to, s)
		s.Token = l.model
		model = append(model, s)
	}
	got, err := p.e.Settle(p.caller, to)
	want, _ := p.m.Settle(p.ctx, model)
	p.hear(err)
	for _, g := range got {
		p.hear(g.Err)
	}
	if err != nil || len(got) != len(want) {
		p.failf("settle: %v, %+v", err, got)
		return
	}
	for i, w := range want {
		g := got[i]
		if w.State == engine.Ready {
			g.Until = w.Until // the contract leaves Until open, because ready does not end by itself
		}
		if g.State != w.State || !p.near(g.Until, w.Until) || engine.Code(g.Err) != engine.Code(w.Err) {
			p.failf("settle: %+v, want %+v", g, w)
		}
	}
}

func (p *player) claim(ref engine.Ref, want engine.Want) {
	if !p.caps.Claim {
		return
	}
	p.refresh()
	s := p.m.find(ref, p.now).situation(p.now)
	if _, paused := p.m.paused(ref.Queue, p.now); paused && ref.IfState == engine.Gone && s != ready && s != scheduled && s != lapsed {
		return // the contract leaves open whether the pause or the message is the reason
	}
	p.logf("claim %+v for %v", ref, want.TTR)
	got, err := p.e.(engine.Claimer).Claim(p.caller, ref, want)
	model, wantErr := p.m.Claim(p.ctx, ref, want)
	if p.agree("claim", err, wantErr) {
		if x := p.m.find(engine.Ref{Queue: ref.Queue, ID: model.ID}, p.now); p.near(got.Due, x.Due) {
			x.Due = got.Due // of two clocks the engine's decides the order
		}
		p.compare("claimed", got.Info, model.Info)
		p.leases = append(p.leases, heldLease{got.Token, model.Token, model.ID, model.Key})
	}
}

// agree compares two errors and reports whether both are nil.
func (p *player) agree(what string, got, want error) bool {
	p.hear(got)
	if engine.Code(got) != engine.Code(want) {
		p.failf("%s: %v, want %v", what, got, want)
	}
	return got == nil && want == nil
}

func (p *player) cancel(ref engine.Ref) {
	if !p.caps.Cancel {
		return
	}
	p.logf("cancel %+v", ref)
	got, err := p.e.Cancel(p.caller, []engine.Ref{ref})
	ref.By = p.b.by(ref)
	want, _ := p.m.Cancel(p.ctx, []engine.Ref{ref})
	p.hear(err)
	if err != nil || len(got) != 1 {
		p.failf("cancel: %v, %d results", err, len(got))
		return
	}
	p.agree("cancel", got[0], want[0])
}

func (p *player) reschedule(ref engine.Ref, due engine.When) {
	if !p.caps.Reschedule {
		return
	}
	p.logf("reschedule %+v to %v", ref, due)
	got, err := p.e.Reschedule(p.caller, ref, due)
	want, wantErr := p.m.Reschedule(p.ctx, ref, due)
	if p.agree("reschedule", err, wantErr) {
		got.Body = want.Body // may be missing
		p.compare("rescheduled", got, want)
	}
}

func (p *player) get(ref engine.Ref) {
	p.logf("get %+v", ref)
	got, err := p.e.Get(p.caller, ref)
	p.m.shown = func(id engine.ID) bool { return got.State == engine.Finished && got.ID == id && !got.Created.IsZero() }
	want, wantErr := p.m.Get(p.ctx, ref)
	p.m.shown = nil
	if p.agree("get", err, wantErr) && !p.doubtful(ref, got, want) {
		p.compare("shown", got, want)
	}
}

// doubtful reports whether got and want are among several messages with the key of ref that
// ended, and one of them died. If it died by a lapse, it is open which ended last.
func (p *player) doubtful(ref engine.Ref, got, want engine.Info) bool {
	if ref.ID != 0 || got.State.Live() || want.State.Live() || p.m.remembered(ref.Queue, ref.Key) != nil {
		return false
	}
	var dead, ended []engine.ID
	for _, x := range p.m.msgs {
		if x.Queue == ref.Queue && x.Key == ref.Key && x.info(p.now).State == engine.Dead {
			dead = append(dead, x.ID)
		}
	}
	for _, y := range p.m.past {
		if y.Queue == ref.Queue && y.Key == ref.Key {
			ended = append(ended, y.ID)
		}
	}
	both := append(ended, dead...)
	return len(dead) > 0 && len(both) > 1 && slices.Contains(both, got.ID) && slices.Contains(both, want.ID)
}

// peek compares what comes first in each queue.
func (p *player) peek(queues []string) {
	e, ok := p.e.(engine.Peeker)
	if !ok || !p.caps.Peek {
		return
	}
	p.logf("peek %v", queues)
	got, err := e.Peek(p.caller, queues)
	want, _ := p.m.Peek(p.ctx, queues)
	p.hear(err)
	if err != nil || len(got) != len(want) {
		p.failf("peek: %v, %d results", err, len(got))
		return
	}
	for i, w := range want {
		g := got[i]
		g.Content, g.Failures, w.Failures, g.LastError = w.Content, nil, nil, w.LastError // may be missing
		if w.ID == 0 || g.ID == 0 {
			if g.ID != w.ID || g.State != w.State {
				p.failf("peek at %s: %+v, want %+v", queues[i], g, w)
			}
			continue
		}
		p.compare("first", g, w)
	}
}

// queuesOf compares the queues in which ids are found.
func (p *player) queuesOf(ids []engine.ID) {
	e, ok := p.e.(engine.Finder)
	if !ok || !p.caps.Find {
		return
	}
	p.logf("find %v", ids)
	got, err := e.Find(p.caller, ids)
	want, _ := p.m.Find(p.ctx, ids)
	p.hear(err)
	if err != nil || !slices.Equal(got, want) {
		p.failf("found %v in %q, want %q: %v", ids, got, want, err)
	}
}

func (p *player) list(q engine.ListQuery) {
	l, ok := p.e.(engine.Lister)
	if !ok || !p.caps.List || q.State == engine.Finished && !p.caps.History {
		return
	}
	q.Body = true
	p.logf("list %+v", q)
	p.refresh()
	ghosts := p.ghosts(q.Queue)
	var got []engine.Info
	for {
		page, err := l.List(p.caller, q)
		p.hear(err)
		if err != nil || len(page.Messages) > q.Limit || len(got) > endless {
			p.failf("list: %v, %d on a page", err, len(page.Messages))
			return
		}
		got = append(got, page.Messages...)
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if !slices.IsSortedFunc(got, order(&q)) {
		p.failf("list of %v is not in order: %+v", q.State, got)
	}
	got = slices.DeleteFunc(got, func(i engine.Info) bool { return ghosts[i.ID] })
	p.m.shown = func(id engine.ID) bool { return slices.Contains(infoIDs(got), id) }
	want := p.m.listed(&q, p.now)
	p.m.shown = nil
	byID := func(a, b engine.Info) int { return int(int64(a.ID) - int64(b.ID)) }
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	if !slices.Equal(infoIDs(got), infoIDs(want)) {
		p.failf("list of %v in %s: ids %v, want %v", q.State, q.Queue, infoIDs(got), infoIDs(want))
		return
	}
	for i := range want {
		p.compare("listed", got[i], want[i])
	}
}

func (p *player) count(queue string) {
	c, ok := p.e.(engine.Counter)
	if !ok || !p.caps.Count {
		return
	}
	p.logf("count %s", queue)
	got, err := c.Queue(p.caller, queue)
	want, _ := p.m.Queue(p.ctx, queue)
	p.hear(err)
	ghosts, unmet := int64(len(p.ghosts(queue))), p.m.slack(queue)
	live := got.Scheduled + got.Ready - want.Scheduled - want.Ready
	dead, gone := got.Dead-want.Dead, got.Finished-want.Finished
	certain, most := p.pastCount(queue)
	if err != nil || live < 0 || live > ghosts || got.Leased != want.Leased ||
		dead < 0 || dead > unmet.culled || gone < -ghosts || gone > unmet.faded || p.caps.History && (got.History < certain || got.History > most) ||
		got.Paused != want.Paused || !p.near(got.PausedUntil, want.PausedUntil) ||
		ghosts == 0 && (got.Ready != want.Ready || !p.near(got.NextDue, want.NextDue) || !p.near(got.OldestReady, want.OldestReady)) {
		p.failf("count: %v, %+v, want %+v", err, got, want)
	}
}

// pastCount returns the least and the most finished messages that an engine may count.
func (p *player) pastCount(queue string) (least, most int64) {
	for _, y := range p.m.past {
		if y.Queue != queue {
			continue
		}
		most++
		if !y.gone && !y.unmet {
			least++
		}
	}
	return least, most
}

func (p *player) forecast(queue string, step time.Duration) {
	f, ok := p.e.(engine.Forecaster)
	if !ok || !p.caps.Forecast || p.clock == nil {
		return
	}
	p.logf("forecast %s by %v", queue, step)
	got, err := f.Forecast(p.caller, queue, step, 100*step)
	want, _ := p.m.Forecast(p.ctx, queue, step, 100*step)
	p.hear(err)
	if err != nil || len(got.Buckets) != len(want.Buckets) {
		p.failf("forecast: %v, %d buckets, want %d", err, len(got.Buckets), len(want.Buckets))
		return
	}
	ghosts := int64(len(p.ghosts(queue)))
	if got.Overdue < want.Overdue || got.Overdue > want.Overdue+ghosts {
		p.failf("forecast: %d overdue, want %d", got.Overdue, want.Overdue)
	}
	for i, w := range want.Buckets {
		if b := got.Buckets[i]; !b.From.Equal(w.From) || b.Count < w.Count || b.Count > w.Count+ghosts {
			p.failf("forecast: bucket %d is %+v, want %+v", i, b, w)
		}
	}
}

func (p *player) pause(queue string, d time.Duration) {
	if p.clock == nil {
		d = d.Truncate(3 * time.Hour) // no pause that ends while the history runs
	}
	if e, ok := p.e.(engine.Pauser); ok && p.caps.Pause {
		p.logf("pause %s for %v", queue, d)
		p.agree("pause", e.Pause(p.caller, queue, d), p.m.Pause(p.ctx, queue, d))
	}
}

func (p *player) resume(queue string) {
	if e, ok := p.e.(engine.Pauser); ok && p.caps.Pause {
		p.logf("resume %s", queue)
		p.agree("resume", e.Resume(p.caller, queue), p.m.Resume(p.ctx, queue))
	}
}

func (p *player) purge(queue string, also engine.PurgeAlso) {
	e, ok := p.e.(engine.Purger)
	if !ok || !p.caps.Purge || p.unmet(queue) {
		return
	}
	if !p.caps.Remember {
		also &^= engine.PurgeFinished
	}
	unmet := p.m.slack(queue)
	_, past := p.pastCount(queue)
	slack := int64(len(p.ghosts(queue))) + unmet.faded + unmet.culled + past
	p.logf("purge %s, also %d", queue, also)
	want, wantErr := p.m.Purge(p.ctx, queue, also)
	most := want + slack
	if also&engine.PurgeFinished != 0 {
		want = max(0, want-past) // what is listed and remembered may count once or twice
	}
	got, err := e.Purge(p.caller, queue, also)
	if p.agree("purge", err, wantErr) && (got < want || got > most) {
		p.failf("purged %d, want %d", got, want)
	}
}

func (p *player) redrive(queue string, n []uint32) {
	e, ok := p.e.(engine.Redriver)
	if !ok || !p.caps.Redrive || p.clock == nil {
		return // redriven messages are due now, which differs between two clocks
	}
	var ids []engine.ID
	keys := map[string]int{}
	for _, i := range p.m.in(queue, engine.Dead, p.now) {
		if keys[i.Key]++; i.Key != "" && keys[i.Key] > 1 || n[0]%2 == 0 {
			ids = append(ids, i.ID)
		}
	}
	if len(ids) > 0 && len(p.ids) > 0 && n[1]%2 == 0 {
		ids = append(ids, pick(p.ids, n[2]), ids[0])
	}
	p.logf("redrive %s, ids %v", queue, ids)
	got, err := e.Redrive(p.caller, queue, ids, 0)
	want, wantErr := p.m.Redrive(p.ctx, queue, ids, 0)
	if p.agree("redrive", err, wantErr) && got != want {
		p.failf("redrive: %+v, want %+v", got, want)
	}
}

// said returns a description of terms, for the log.
func said(t engine.Terms) string {
	return fmt.Sprintf("expires after %v, attempts %d, priority %s, ttr %v, backoff %v, remember %v", t.ExpireAfter, t.MaxAttempts, saidPriority(t.Priority), t.TTR, t.Backoff, t.Remember)
}

func saidPriority(p *uint32) string {
	if p == nil {
		return "unset"
	}
	return fmt.Sprint(*p)
}

// ghosts returns the expired messages of a queue that may still appear in lists and counters.
func (p *player) ghosts(queue string) map[engine.ID]bool {
	p.refresh()
	all := map[engine.ID]bool{}
	for id, g := range p.m.ghosts {
		if g.queue == queue && !p.swept[id] {
			all[id] = true
		}
	}
	return all
}

// unswept returns how many ghosts there are according to the model, which may be locked.
func (p *player) unswept(queue string) (n int64) {
	for id, g := range p.m.ghosts {
		if g.queue == queue && !p.swept[id] {
			n++
		}
	}
	return n
}

// near reports whether two instants agree: exactly on one clock, to a minute on two.
func (p *player) near(a, b time.Time) bool {
	return a.Equal(b) || p.clock == nil && !a.IsZero() && !b.IsZero() && a.Sub(b).Abs() < time.Minute
}

// compare compares a message of the engine with the model's, except for the fields that the
// contract leaves open.
func (p *player) compare(what string, got, want engine.Info) {
	for _, t := range []struct{ got, want *time.Time }{
		{&got.Due, &want.Due}, {&got.Created, &want.Created}, {&got.Expires, &want.Expires}, {&got.Deadline, &want.Deadline}, {&got.Died, &want.Died},
		{&got.Started, &want.Started}, {&got.Ended, &want.Ended}, {&got.Forgotten, &want.Forgotten},
	} {
		if p.near(*t.got, *t.want) {
			*t.want = *t.got
		}
	}
	for i := range min(len(got.Failures), len(want.Failures)) {
		if p.near(got.Failures[i].At, want.Failures[i].At) {
			want.Failures[i].At = got.Failures[i].At
		}
	}
	if x := p.m.find(engine.Ref{Queue: want.Queue, ID: want.ID}, p.now); x != nil {
		p.allow(got, &want, x)
	}
	if problem := sameInfo(got, want); problem != "" {
		p.failf("%s: %s", what, problem)
	}
}

// allow removes from want, which the model shows of x, what the engine cannot keep or may show
// in its own way.
func (p *player) allow(got engine.Info, want *engine.Info, x *modelMessage) {
	if !p.caps.History {
		want.Started = time.Time{}
	}
	if !p.caps.Workers {
		want.Worker = ""
		for i := range want.Failures {
			want.Failures[i].Worker = ""
		}
	}
	if !p.caps.Failures {
		want.Failures = nil
		if want.State != engine.Dead && (x.vague || x.situation(p.now) == lapsed) {
			want.LastError = got.LastError
		}
	}
}

// compareAll compares the whole engine with the model.
func (p *player) compareAll() {
	p.tick()
	for _, id := range p.ids {
		p.get(engine.Ref{Queue: p.queueOf[id], ID: id})
	}
	for _, queue := range p.queues {
		for n := uint32(1); p.caps.Keys && n <= p.keys(); n++ {
			p.get(engine.Ref{Queue: queue, Key: keyOf(n)})
		}
		for state := engine.Scheduled; state <= engine.Finished; state++ {
			p.list(engine.ListQuery{Queue: queue, State: state, Limit: 100})
		}
		p.settings(queue)
		p.count(queue)
		p.forecast(queue, time.Hour)
	}
}
