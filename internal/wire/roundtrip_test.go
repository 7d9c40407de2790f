package wire

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// FuzzRoundTrip: what is written is read as it was.
func FuzzRoundTrip(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		g := &values{rand.New(rand.NewPCG(seed, 1))}
		requests(t, g)
		answers(t, g)
		queries(t, g)
	})
}

// A server tells of all that its engine can do, but for what concerns the server alone.
func TestAllAbilitiesAreTold(t *testing.T) {
	var all engine.Capabilities
	own := []string{"ListDead", "LeaseWait", "Foresight", "Prompt"}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(all)) {
		if f.Type.Kind() == reflect.Bool && !slices.Contains(own, f.Name) {
			reflect.ValueOf(&all).Elem().FieldByIndex(f.Index).SetBool(true)
		}
	}
	var s Server
	s.Tell(all)
	if told := s.Told(); !reflect.DeepEqual(told, all) {
		t.Errorf("%+v is told as %+v", all, told)
	}
}

func same[T any](t *testing.T, text []byte, want, got T) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("%s\ngot  %+v\nwant %+v", text, got, want)
	}
}

func request[T any](t *testing.T, o *Object[T], want T) {
	t.Helper()
	text := o.Append(nil, &want)
	var r Reader
	r.Reset(text)
	var got T
	o.Read(&r, &got)
	if err := r.Err(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	same(t, text, want, got)
}

func answer[T any](t *testing.T, o *Object[T], want T) {
	t.Helper()
	answerIs(t, o, o.Append(nil, &want), want)
}

// answerIs reads an answer that is not written by its object.
func answerIs[T any](t *testing.T, o *Object[T], text []byte, want T) {
	t.Helper()
	got, err := o.Answer(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	same(t, text, want, got)
}

func resultsAre[T any](t *testing.T, o *Object[T], text []byte, want []T) {
	t.Helper()
	var got []T
	if err := ReadResults(text, o, func(result *T) { got = append(got, *result) }); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	same(t, text, want, got)
}

func requests(t *testing.T, g *values) {
	request(t, PushedMessage, g.message())

	msgs := some(g, g.message)
	text, n := AppendBatch(nil, msgs, g.coin(), len(msgs), 500)
	var r Reader
	var b Batch
	r.Reset(text)
	NewBatch.Read(&r, &b)
	if r.Err() != nil || b.Bad != nil {
		t.Fatalf("%s: %v, %v", text, r.Err(), b.Bad)
	}
	same(t, text, slices.Clip(msgs[:n]), slices.Clip(b.All))

	l := LeaseRequest{Queues: some(g, g.text), Max: 1 + g.IntN(engine.MaxLease), Wait: time.Duration(1 + g.Int64N(int64(MaxWait))), TTR: g.ttr(), Worker: g.worker(), Poll: "p" + strconv.Itoa(g.Int())}
	if g.coin() {
		l.Keep = true
	}
	if g.coin() {
		l.Queues, l.Keep, l.Set = nil, false, "s"+strconv.Itoa(g.Int())
	}
	if g.coin() {
		l.Room = []Room{{g.text(), 0}, {g.text(), g.IntN(engine.MaxLease)}}
	}
	request(t, Leasing, l)

	request(t, Settling, Items[engine.Settlement]{All: some(g, func() engine.Settlement {
		s := engine.Settlement{Token: "t" + g.text(), Do: engine.Action(1 + g.IntN(6))}
		if s.Do == engine.Extend {
			s.TTR = g.ttr()
		}
		if s.Do == engine.Snooze || s.Do == engine.Retry && g.coin() {
			w := g.when()
			s.When = &w
		}
		if s.Do == engine.Retry || s.Do == engine.Bury {
			s.Reason = g.text()
		}
		if s.Do != engine.Ack && s.Do != engine.Extend && g.coin() {
			s.Priority = new(g.Uint32())
		}
		return s
	})})

	request(t, Cancelling, Items[engine.Ref]{All: some(g, func() engine.Ref {
		if g.coin() {
			return engine.Ref{Queue: "q" + g.text(), ID: g.id(), IfState: engine.State(g.IntN(5))}
		}
		return engine.Ref{Queue: "q" + g.text(), Key: "k" + g.text(), IfState: engine.State(g.IntN(5))}
	})})

	request(t, Rescheduling, g.when())
	request(t, Pausing, g.duration())
	request(t, Claiming, Claim{g.ttr(), g.worker()})
	request(t, PollEnding, l.Poll)
	request(t, Backing, "b"+strconv.Itoa(g.Int()))
	request(t, Purging, engine.PurgeAlso(g.IntN(4)))
	request(t, Configuring, Settings{g.settings(), "r" + g.text()})
	request(t, Configuring, Settings{g.settings(), ""})
	request(t, Redriving, Sweep{IDs: some(g, g.id)})
	request(t, Redriving, Sweep{Limit: 7})
	from := g.instant()
	if !from.IsZero() {
		from = from.Truncate(time.Millisecond)
	}
	request(t, Dropping, Sweep{Groups: some(g, g.text), Error: "e" + g.text(), KeyPrefix: "k" + g.text(), From: from, DryRun: g.coin()})
}

func answers(t *testing.T, g *values) {
	e := g.err()
	answerIs(t, Failed, AppendError(nil, e), error(e))

	all := some(g, func() Pushed {
		p := g.pushed()
		if g.coin() {
			p.Outcome = engine.Outcome(1 + g.IntN(3))
		} else {
			p.Err = g.err()
		}
		return p
	})
	b := BeginResults(nil)
	for i := range all {
		b.Pushed(&all[i])
	}
	resultsAre(t, PushResult, b.End(), all)

	settled := some(g, func() Settled {
		if g.coin() {
			return Settled{Settled: engine.Settled{Err: g.err()}}
		}
		return Settled{Settled: engine.Settled{State: engine.State(g.IntN(5)), Until: g.time()}}
	})
	b = BeginResults(nil)
	for i := range settled {
		b.Settled("t", &settled[i].Settled)
	}
	resultsAre(t, SettleResult, b.End(), settled)

	b = BeginResults(nil)
	byKey, byID := engine.Ref{Queue: "q", Key: "k"}, engine.Ref{Queue: "q", ID: 1}
	b.Cancelled(byKey, nil)
	b.Cancelled(byID, e)
	resultsAre(t, CancelResult, b.End(), []Cancelled{{byKey, true, nil}, {byID, false, e}})

	leased := Leased{Messages: some(g, g.lease), NextDue: g.time(), Now: g.time(), Waited: time.Duration(g.IntN(60_000)) * time.Millisecond, Queues: some(g, func() Granted {
		q := Granted{Queue: g.text(), Waited: g.coin(), Granted: engine.Granted{Expired: g.IntN(9), Died: g.IntN(9) - 2, Held: g.coin()}}
		if !q.Waited {
			q.More, q.NextDue = g.coin(), g.time()
		}
		if g.coin() {
			q.Err = g.err()
		}
		return q
	})}
	answerIs(t, LeaseAnswer, AppendLeased(nil, &leased, Exactly), leased)

	answer(t, Configured, Settings{g.settings(), "r" + g.text()})

	page := engine.Page{Next: g.text(), Messages: some(g, func() engine.Info { return g.lease().Info })}
	answerIs(t, MessagePage, AppendPage(nil, &page, Exactly), page)

	answer(t, QueuePage, Queues{Next: "n", Queues: some(g, func() engine.QueueInfo {
		return engine.QueueInfo{
			Queue: g.text(), Scheduled: g.Int64(), Ready: g.Int64(), Leased: g.Int64(), Dead: g.Int64(), Finished: g.Int64(), History: g.Int64(),
			NextDue: g.time(), OldestReady: g.time(), Paused: g.coin(), PausedUntil: g.time(),
		}
	})})
	answer(t, ForecastAnswer, Forecast{time.Minute, engine.Forecast{
		Overdue: g.Int64(), Buckets: some(g, func() engine.Bucket { return engine.Bucket{From: g.time(), Count: g.Int64()} }),
	}})
	answer(t, Redriven, Swept{Count: g.Int64(), Skipped: g.Int64()})
	answer(t, Redriven, Swept{Count: g.Int64(), Seen: new(g.Int64()), To: g.time(), Done: new(g.coin()), Failed: g.err()})
	answer(t, BackedUp, Backup{"orders", engine.Backup{Taken: g.time(), Files: g.Int(), Bytes: g.Int64(), Copied: g.Int64()}})

	c := engine.Capabilities{
		Name:      g.text(),
		Abilities: engine.Abilities{Claim: g.coin(), Atomic: g.coin(), Priority: g.coin(), Range: g.coin(), IfState: g.coin(), Remember: g.coin(), History: g.coin(), Isolate: g.coin(), Settings: g.coin()},
		Limits:    engine.Limits{MaxPending: g.Int64(), MaxDelay: g.duration(), Delays: some(g, g.duration), Precision: g.duration(), Window: g.Int(), Shares: g.coin()},
	}
	s := Server{Version: g.text(), Limits: Limits{MaxBatch: 1, MaxLease: 1, MaxRequest: 1, MaxWait: Duration(g.duration())}, Now: Time{g.time()}}
	s.Tell(c)
	text := AppendJSON(nil, &s)
	got, err := ReadServer(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	same(t, text, s, got)
	same(t, text, c, got.Told())
}

func queries(t *testing.T, g *values) {
	l := List{ListQuery: engine.ListQuery{State: engine.State(g.IntN(6)), After: g.text(), Limit: g.IntN(engine.MaxPage + 1), Body: g.coin(), Newest: g.coin()}}
	l.From, l.To, l.KeyPrefix = g.instant(), g.instant(), g.text()
	query(t, ListQuery, l)
	query(t, FindQuery, List{Key: "k" + g.text()})
	query(t, FindQuery, List{Chosen: Chosen{KeyPrefix: l.KeyPrefix, Header: "h" + g.text()}})
	query(t, PageQuery, PageAsked{l.After, l.Limit})
	query(t, RefQuery, engine.State(g.IntN(5)))
	d := g.duration()
	query(t, ForecastQuery, ForecastAsked{d, 2 * d})
	query(t, ProblemsQuery, d-1)
	queues := some(g, func() string { return "q." + strconv.Itoa(g.IntN(9)) })
	query(t, TrendsQuery, TrendsAsked{TrendAsked: TrendAsked{d, 0}, Queues: queues})
	query(t, LiveQuery, LiveAsked{queues, Overview(1 + g.IntN(3))})
}

// query checks that a query says what it was made of.
func query[T any](t *testing.T, o *Object[T], want T) {
	t.Helper()
	text := o.FormatQuery(&want)
	got, err := o.ParseQuery(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	same(t, []byte(text), want, got)
}

// values makes values that stand for themselves on the wire.
type values struct {
	*rand.Rand
}

func some[T any](g *values, one func() T) []T {
	all := make([]T, 1+g.IntN(3))
	for i := range all {
		all[i] = one()
	}
	return all
}

func (g *values) coin() bool { return g.IntN(2) == 0 }

func (g *values) text() string {
	letters := []rune("abc<>&\"\\/\x00\n\u2028é𝄞 %")
	s := ""
	for range g.IntN(8) {
		s += string(letters[g.IntN(len(letters))])
	}
	return s
}

func (g *values) worker() string { return strings.NewReplacer("\x00", "", "\n", "").Replace(g.text()) }

func (g *values) body() []byte {
	if g.coin() {
		return nil
	}
	b := make([]byte, 1+g.IntN(40))
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}

func (g *values) id() engine.ID           { return engine.ID(1 + g.Uint64N(math.MaxUint64)) }
func (g *values) duration() time.Duration { return time.Duration(1 + g.Int64N(math.MaxInt64/2)) }
func (g *values) ttr() time.Duration {
	return engine.MinTTR + time.Duration(g.Int64N(int64(engine.MaxTTR-engine.MinTTR)))
}

func (g *values) time() time.Time {
	if g.IntN(4) == 0 {
		return time.Time{}
	}
	return time.UnixMilli(-62_135_596_799_999 + g.Int64N(lastTime.UnixMilli()+62_135_596_800_000)).UTC()
}

// instant is a time of any precision.
func (g *values) instant() time.Time {
	t := g.time()
	if !t.IsZero() {
		t = t.Add(time.Duration(g.IntN(1_000_000)))
	}
	return t
}

func (g *values) when() engine.When {
	if t := g.instant(); !t.IsZero() {
		return engine.When{At: t}
	}
	return engine.When{In: g.duration()}
}

func (g *values) headers() []engine.Header {
	if g.coin() {
		return nil
	}
	return some(g, func() engine.Header { return engine.Header{Name: g.text(), Value: g.text()} })
}

func (g *values) content() engine.Content {
	return engine.Content{Body: g.body(), ContentType: g.text(), Headers: g.headers()}
}

func (g *values) policy() engine.Policy {
	p := engine.Policy{Priority: g.Uint32(), MaxAttempts: g.Uint32N(engine.MaxMaxAttempts), TTR: g.ttr(), ExpireAfter: g.duration(), Remember: min(g.duration(), engine.MaxRemember), Isolate: g.coin()}
	if g.coin() {
		p.Backoff = some(g, g.duration)
	}
	return p
}

func (g *values) settings() (s engine.Settings) {
	s.Defaults = g.terms()
	if g.coin() {
		s.History, s.HistoryMax = g.duration(), 1+g.Int64N(engine.MaxCount)
	}
	if g.coin() {
		s.History = engine.Never
	}
	if g.coin() {
		s.DeadKeep, s.DeadMax, s.MaxPending = g.duration(), 1+g.Int64N(engine.MaxCount), 1+g.Int64N(engine.MaxCount)
	}
	if g.coin() {
		s.InFlight, s.Rate = 1+g.Int64N(engine.MaxCount), engine.MinRate+g.Float64()*10
	}
	if g.coin() {
		s.Rate, s.Burst = engine.MaxRate-g.Float64()*1e5, 1+g.Int64N(engine.MaxBurst)
	}
	return s
}

// pushed is what a push met or made.
func (g *values) pushed() Pushed {
	p := Pushed{PushResult: engine.PushResult{ID: g.id(), Due: g.time(), State: engine.State(g.IntN(6))}, Queue: g.text(), Key: g.text()}
	if p.State == engine.Finished {
		p.Ending, p.Ended = g.ending(), g.time()
	}
	return p
}

func (g *values) ending() engine.Ending { return engine.Ending(1 + g.IntN(3)) }

func (g *values) terms() (t engine.Terms) {
	if g.coin() {
		p := g.policy()
		t = p.Terms()
	}
	return t
}

func (g *values) message() engine.Message {
	m := engine.Message{Queue: g.text(), Due: g.when(), Content: g.content(), Terms: g.terms()}
	if g.coin() {
		m.Key, m.OnConflict = "k"+g.text(), engine.Conflict(g.IntN(5))
	}
	if m.OnConflict == engine.Replace {
		m.Token = g.text()
	}
	return m
}

func (g *values) lease() engine.Lease {
	if g.IntN(6) == 0 {
		l := engine.Lease{Info: engine.Info{
			ID: g.id(), Queue: g.text(), Key: g.text(), State: engine.Finished, Due: g.time(), Ending: g.ending(), Ended: g.time(), Forgotten: g.time(),
		}}
		if l.Created = g.time(); !l.Created.IsZero() { // it is listed
			l.Attempt, l.LastError, l.Failures, l.Worker, l.Started = g.Uint32(), g.text(), some(g, g.failure), g.text(), g.time()
		}
		return l
	}
	return engine.Lease{Token: g.text(), Info: engine.Info{
		ID: g.id(), Queue: g.text(), Key: g.text(), State: engine.State(g.IntN(5)), Due: g.time(), Created: g.time(), Expires: g.time(),
		Attempt: g.Uint32(), Content: g.content(), Policy: g.policy(), LastError: g.text(), Deadline: g.time(), Died: g.time(), Worker: g.text(), Started: g.time(),
		Failures: some(g, g.failure),
	}}
}

func (g *values) failure() engine.Failure {
	return engine.Failure{At: g.time(), Attempt: g.Uint32(), Worker: g.text(), Reason: g.text()}
}

func (g *values) err() *Error {
	e := &Error{Code: "exists", Message: g.text(), Hint: g.text()}
	if g.coin() {
		e.Live = new(g.pushed())
	}
	if g.coin() {
		e.Until = g.time()
	}
	return e
}
