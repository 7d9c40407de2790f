package source

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
)

// connect connects to the Redis, or Redis Cluster, of a URL.
func connect(u *url.URL) (rueidis.Client, error) {
	option, err := rueidis.ParseURL(u.String())
	if err != nil { // its text may hold a password
		return nil, engine.Invalid("open", engine.Ref{}, "the Redis to copy from is like redis://user:password@host:6379/0")
	}
	option.DisableCache, option.PipelineMultiplex = true, -1
	client, err := rueidis.NewClient(option)
	if err != nil {
		return nil, unreached(u, err)
	}
	return client, nil
}

// ZSet is a sorted set. Its scores are due times, its members messages of a queue.
type ZSet struct {
	Set, Queue string
	PerSecond  float64 // 1 where scores are seconds, 1000 where they are milliseconds

	// Body says where a member's body is: KEY, or KEY#FIELD of a hash, in which {} stands for
	// the member. "": it is the member.
	Body string

	client rueidis.Client
	sets   []string // what remains to be read
	cursor uint64   // of the first set
	lock   string   // field of a task of asynq that has the key of its lock
	finish func(e *Entry) error
}

// Open connects to the Redis of a URL, and returns the set as a source.
func (z *ZSet) Open(u *url.URL) (all []Source, done func(), err error) {
	if z.client, err = connect(u); err != nil {
		return nil, nil, err
	}
	z.sets, z.finish = []string{z.Set}, func(*Entry) error { return nil }
	return []Source{z}, z.client.Close, nil
}

// Name returns the key of the set.
func (z *ZSet) Name() string { return z.Set }

// member is what Remove compares.
type member struct{ set, score string }

// Next goes by ZSCAN, since members may come and go meanwhile.
func (z *ZSet) Next(ctx context.Context) (all []Entry, err error) {
	for len(all) == 0 && len(z.sets) > 0 {
		set := z.sets[0]
		got, err := z.client.Do(ctx, z.client.B().Zscan().Key(set).Cursor(z.cursor).Count(page).Build()).AsScanEntry()
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", set, err)
		}
		for i := 0; i+1 < len(got.Elements); i += 2 {
			name, score := got.Elements[i], got.Elements[i+1]
			e := Entry{ID: name, was: member{set, score}}
			e.Queue, e.Key, e.Body = z.Queue, keyFor(name), []byte(name)
			e.Due.At, e.Err = z.due(score)
			all = append(all, e)
		}
		if z.cursor = got.Cursor; z.cursor == 0 {
			z.sets = z.sets[1:]
		}
	}
	if z.Body == "" || len(all) == 0 {
		return all, nil
	}
	return all, z.bodies(ctx, all)
}

// due returns the time of a score, rounded up to the millisecond.
func (z *ZSet) due(score string) (time.Time, error) {
	n, err := strconv.ParseFloat(score, 64)
	ms := math.Ceil(n * 1000 / z.PerSecond)
	if err != nil || !(math.Abs(ms) < 1<<53) {
		return time.Time{}, fmt.Errorf("its score %s is no time", score)
	}
	return time.UnixMilli(int64(ms)), nil
}

// bodies reads the bodies of entries, and finishes those that have one.
func (z *ZSet) bodies(ctx context.Context, all []Entry) error {
	reads := make(rueidis.Commands, len(all))
	for i := range all {
		key, field := z.place(all[i].ID)
		reads[i] = z.client.B().Get().Key(key).Build()
		if field != "" {
			reads[i] = z.client.B().Hget().Key(key).Field(field).Build()
		}
	}
	for i, r := range z.client.DoMulti(ctx, reads...) {
		e := &all[i]
		body, err := r.AsBytes()
		switch {
		case rueidis.IsRedisNil(err):
			e.Err = errors.New("its body is not there")
		case err != nil:
			return fmt.Errorf("a body cannot be read: %w", err)
		case e.Err == nil:
			e.Body = body
			e.Err = z.finish(e)
		}
	}
	return nil
}

// place returns the key, and the field of a hash or "", that hold the body of a member.
func (z *ZSet) place(member string) (key, field string) {
	key, field, _ = strings.Cut(z.Body, "#")
	return strings.ReplaceAll(key, "{}", member), strings.ReplaceAll(field, "{}", member)
}

// remove removes a member with its body: a field of KEYS[2], or all of it. A unique task of asynq
// has a lock, whose key is in a field of the body's hash.
var remove = rueidis.NewLuaScript(`
local member, score, field, lock = unpack(ARGV)
if tonumber(redis.call('ZSCORE', KEYS[1], member) or 'nan') ~= tonumber(score) then
	return 0
end
lock = lock ~= '' and redis.call('HGET', KEYS[2], lock)
if lock and lock ~= '' and redis.call('GET', lock) == member then
	redis.call('DEL', lock)
end
if field ~= '' then
	redis.call('HDEL', KEYS[2], field)
elseif KEYS[2] then
	redis.call('UNLINK', KEYS[2])
end
return redis.call('ZREM', KEYS[1], member)`)

// Remove removes members whose scores are the same.
func (z *ZSet) Remove(ctx context.Context, entries []Entry) ([]bool, error) {
	calls := make([]rueidis.LuaExec, len(entries))
	for i, e := range entries {
		m := e.was.(member)
		key, field := z.place(e.ID)
		if !strings.HasSuffix(z.Body, "#{}") {
			field = "" // the key is the member's own
		}
		calls[i] = rueidis.LuaExec{Keys: []string{m.set}, Args: []string{e.ID, m.score, field, z.lock}}
		if key != "" {
			calls[i].Keys = append(calls[i].Keys, key)
		}
	}
	removed := make([]bool, len(entries))
	for i, r := range remove.ExecMulti(ctx, z.client, calls...) {
		n, err := r.AsInt64()
		if err != nil {
			return nil, err
		}
		removed[i] = n == 1
	}
	return removed, nil
}
