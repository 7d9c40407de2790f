package memengine

import (
	"slices"
	"strings"

	"github.com/tarryhq/tarry/engine"
)

// kinds caches the last kinds, for further messages to share. Most queues have one.
type kinds struct {
	recent [8]*kind
	oldest int
}

// kindOf returns the kind of a message to push.
func (q *queue) kindOf(in *engine.Message) *kind {
	policy := in.Resolve(q.settings.Terms())
	return q.kinds.of(&policy, in.ContentType)
}

// prioritize gives a message a priority. It is called before the message is taken from its
// state and put into another.
func (q *queue) prioritize(m *message, priority uint32) {
	if priority == m.kind.Priority {
		return
	}
	policy := m.kind.Policy
	policy.Priority = priority
	m.kind = q.kinds.of(&policy, m.kind.contentType)
}

// of returns the kind of messages with these values.
func (k *kinds) of(p *engine.Policy, contentType string) *kind {
	for _, known := range k.recent {
		if known != nil && known.is(p, contentType) {
			return known
		}
	}
	made := &kind{*p, strings.Clone(contentType)}
	made.Backoff = copied(p.Backoff)
	k.recent[k.oldest] = made
	k.oldest = (k.oldest + 1) % len(k.recent)
	return made
}

func (k *kind) is(p *engine.Policy, contentType string) bool {
	return k.Priority == p.Priority && k.MaxAttempts == p.MaxAttempts && k.TTR == p.TTR &&
		k.ExpireAfter == p.ExpireAfter && k.Remember == p.Remember && k.Isolate == p.Isolate && k.contentType == contentType && slices.Equal(k.Backoff, p.Backoff)
}
