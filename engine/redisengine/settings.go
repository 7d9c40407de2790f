package redisengine

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// The first shard of a queue has its authoritative settings. Every shard has a copy, by
// which its scripts enforce the limits. A push makes its policies by a revision that it
// names; a shard with another revision does nothing and answers with its settings. An engine
// that finds a shard with older settings updates it, so a configuration that failed halfway
// still spreads: the highest revision wins.

var _ engine.Configurer = (*Engine)(nil)

// configured holds the settings of a queue as stored on a shard; nil if there are none.
type configured struct {
	engine.Settings
	revision float64
	raw      string
}

// revisionBytes is the length of a revision in Redis, and limitsBytes that of the limits
// after it.
const (
	revisionBytes = 8
	limitsBytes   = 6 * 8
	listedBytes   = 2 * 8 // of the history, if the settings have one
)

// mark is the revision that a push names.
func (c *configured) mark() string {
	if c == nil {
		return ""
	}
	return c.raw[:revisionBytes]
}

func (c *configured) defaults() *engine.Terms {
	if c == nil {
		return nil
	}
	return &c.Defaults
}

// at is the revision for callers.
func (c *configured) at() string {
	if c == nil {
		return "0"
	}
	return strconv.FormatFloat(c.revision, 'f', 0, 64)
}

func (c *configured) newer(than *configured) bool {
	return c != nil && (than == nil || c.revision > than.revision)
}

// appendSettings appends settings without their revision: one shard's share of the limits
// (LIMITS and LISTED of lua/shard.lua), then all settings in JSON unless nothing is set.
func appendSettings(b []byte, s *engine.Settings, shards int) ([]byte, error) {
	share := func(n int64) float64 { return float64(shareOf(n, shards)) }
	burst := 0.0
	if s.Rate > 0 {
		burst = share(s.Bursts())
	}
	for _, f := range []float64{
		float64(ceil(s.DeadKeep, time.Millisecond)), share(s.DeadMax), share(s.MaxPending), share(s.InFlight),
		s.Rate / float64(shards), burst,
	} {
		b = appendFloat(b, f)
	}
	if s.History != 0 || s.HistoryMax != 0 {
		keep := float64(ceil(s.History, time.Millisecond))
		if s.History < 0 {
			keep = -1
		}
		b = appendFloat(appendFloat(b, keep), share(s.HistoryMax))
	}
	if s.Unset() {
		return b, nil
	}
	text, err := json.Marshal(s)
	return append(b, text...), err
}

// shareOf is a shard's share of a limit, rounded up.
func shareOf(n int64, shards int) int64 {
	return int64(math.Ceil(float64(n) / float64(shards)))
}

// readSettings reads settings as stored on a shard, nil if there are none.
func readSettings(v *rueidis.RedisMessage) (*configured, error) {
	raw, err := v.ToString()
	if err != nil {
		return nil, errAnswer
	}
	if raw == "" {
		return nil, nil
	}
	c := &configured{raw: raw}
	r := codec.Reader{B: []byte(raw)}
	c.revision = math.Float64frombits(r.Uint(revisionBytes))
	r.Take(limitsBytes)
	if len(r.B) > 0 && r.B[0] != '{' {
		r.Take(listedBytes)
	}
	if r.Err == nil && len(r.B) > 0 {
		r.Err = json.Unmarshal(r.B, &c.Settings)
	}
	if r.Err != nil {
		return nil, errSettings
	}
	return c, nil
}

var errSettings = fmt.Errorf("the settings of a queue in Redis are damaged, or not from tarry: %w", errRecord)

// learn records settings that a shard has.
func (q *queue) learn(c *configured) {
	for {
		known := q.known.Load()
		if !c.newer(known) || q.known.CompareAndSwap(known, c) {
			return
		}
	}
}

// reconcile brings the engine and a shard to the newer of their settings. is has those of the
// shard.
func (e *Engine) reconcile(ctx context.Context, q *queue, s *shard, is *configured) error {
	q.learn(is)
	if known := q.known.Load(); known.newer(is) {
		return e.bring(ctx, []*shard{s}, known)
	}
	return nil
}

// bring sends settings to shards that have older ones.
func (e *Engine) bring(ctx context.Context, shards []*shard, c *configured) error {
	err := e.eachShard(ctx, shards, spreadScript, []string{c.raw}, func(int, answer) error { return nil })
	for _, s := range shards {
		s.doubt()
		e.watchers.Hint(s.queue)
	}
	return err
}

// Settings returns the settings of a queue and their revision.
func (e *Engine) Settings(ctx context.Context, name string) (engine.Settings, string, error) {
	if err := e.calls.Enter(ctx, "settings"); err != nil {
		return engine.Settings{}, "", err
	}
	defer e.calls.Leave()
	q := e.queue(name)
	a := e.ask1(ctx, settingsScript, q.shards[0])
	if a.err == nil && len(a.values) != 1 {
		a.err = errAnswer
	}
	if a.err != nil {
		return engine.Settings{}, "", fault("settings", name, a.err)
	}
	c, err := readSettings(&a.values[0])
	if err != nil {
		return engine.Settings{}, "", fault("settings", name, err)
	}
	q.learn(c)
	if c == nil {
		return engine.Settings{}, c.at(), nil
	}
	s := c.Settings
	s.Defaults = s.Defaults.Clone()
	return s, c.at(), nil
}

// Configure stores the settings of a queue. After an error they may still be in force, as
// Settings shows, and reach the other shards later.
func (e *Engine) Configure(ctx context.Context, name string, s engine.Settings, revision string) (string, error) {
	if err := e.calls.Enter(ctx, "configure"); err != nil {
		return "", err
	}
	defer e.calls.Leave()
	q := e.queue(name)
	e.note(ctx, q)
	raw, err := appendSettings(nil, &s, len(q.shards))
	if err != nil {
		return "", fault("configure", name, err)
	}
	for {
		a := e.ask1(ctx, configureScript, q.shards[0], revision, rueidis.BinaryString(raw))
		if a.err == nil && len(a.values) != 2 {
			a.err = errAnswer
		}
		if a.err != nil {
			return "", fault("configure", name, a.err)
		}
		switch done, _ := a.values[0].AsInt64(); done {
		case 0:
			stands, _ := a.values[1].ToString()
			return "", engine.RefuseRevision(name, stands)
		case 1:
			c, err := readSettings(&a.values[1])
			if err != nil {
				return "", fault("configure", name, err)
			}
			q.learn(c)
			return c.at(), fault("configure", name, e.bring(ctx, q.shards, c))
		}
	}
}

// differs is the error of a push that did nothing because the shard has other settings.
type differs struct{ is *configured }

func (*differs) Error() string {
	return "the settings of the queue kept changing during the push"
}

// difference returns the error of a push that named other settings; nil if it did not.
func difference(values []rueidis.RedisMessage) error {
	if len(values) != 2 {
		return nil
	}
	if what, err := values[0].ToString(); err != nil || what != "settings" {
		return nil
	}
	is, err := readSettings(&values[1])
	if err != nil {
		return err
	}
	return &differs{is}
}
