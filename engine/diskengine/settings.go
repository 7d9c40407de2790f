package diskengine

import (
	"context"
	"encoding/binary"
	"strconv"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Settings tells the settings of a queue and their revision.
func (e *Engine) Settings(ctx context.Context, name string) (s engine.Settings, revision string, err error) {
	revision = unwritten
	err = e.do(ctx, "settings", func(_ clock, p *pending) error {
		q := e.queue(name)
		if q == nil {
			return nil
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		p.see(q)
		if q.rules != nil {
			s, revision = q.rules.Settings, q.revision()
			s.Defaults = s.Defaults.Clone()
		}
		return nil
	})
	if err != nil {
		return engine.Settings{}, "", err
	}
	return s, revision, nil
}

// Configure stores the settings of a queue, all of them. What they do not let stay is
// dropped before it answers; when ctx ends first, it is dropped soon after.
func (e *Engine) Configure(ctx context.Context, name string, s engine.Settings, revision string) (string, error) {
	s.Defaults = s.Defaults.Clone()
	var made string
	err := e.do(ctx, "configure", func(now clock, p *pending) error {
		var q *queue
		for q == nil || q.gone { // it may be forgotten while others get at it
			if q != nil {
				q.mu.Unlock()
			}
			var err error
			if q, err = e.lockQueue(name); err != nil {
				return err
			}
			// What is gone by the settings before does not come back.
			if now, err = q.dropAll(ctx, now, p); err != nil {
				q.mu.Unlock()
				return err
			}
		}
		defer q.mu.Unlock()
		p.see(q)
		if made = q.revision(); revision != "" && revision != made {
			return engine.RefuseRevision(name, made)
		}
		if err := q.configure(now, p, s); err != nil {
			return err
		}
		made = q.revision()
		_, _ = q.dropAll(ctx, now, p) // what is left is dropped by the loader
		return nil
	})
	if err != nil {
		return "", err
	}
	return made, nil
}

// configure writes settings.
func (q *queue) configure(now clock, p *pending, s engine.Settings) error {
	rules := &rules{Settings: s, revision: 1, graves: position{at: never}}
	if was := q.rules; was != nil {
		rules.revision, rules.bucket, rules.graves = was.revision+1, was.bucket, was.graves
	}
	b := q.e.store.db.NewBatch()
	if err := b.Set(appendHead(nil, kindSettings, q.num), rules.append(nil), nil); err != nil {
		_ = b.Close()
		return err
	}
	if err := q.applyAlone(p, b); err != nil {
		return err
	}
	q.rules = rules
	q.told = now.ms
	p.hints = append(p.hints, q.name) // more may be leased than was said
	return nil
}

// unwritten is the revision of settings that were never written.
const unwritten = "0"

func (q *queue) revision() string {
	if q.rules == nil {
		return unwritten
	}
	return strconv.FormatUint(q.rules.revision, 10)
}

// configured reports whether something is set.
func (q *queue) configured() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.rules != nil && !q.rules.Unset()
}

// defaults are those of a push.
func (q *queue) defaults() *engine.Terms {
	if q.rules == nil {
		return nil
	}
	return &q.rules.Defaults
}

// settingsVersion is the first byte of settings.
const settingsVersion = 1

// append writes the value of settings.
func (r *rules) append(b []byte) []byte {
	b = binary.AppendUvarint(append(b, settingsVersion), r.revision)
	return codec.AppendSettings(b, &r.Settings)
}

// parseRules reads what append wrote.
func parseRules(v []byte) (*rules, error) {
	in := codec.Reader{B: v}
	if in.Byte() != settingsVersion {
		in.Fail()
	}
	r := &rules{revision: in.Uvarint(), graves: position{at: never}}
	r.Settings = in.Settings()
	return r, in.End()
}
