package memengine

import (
	"slices"
	"strings"

	"github.com/tarryhq/tarry/engine"
)

// kinds remembers the kinds used last, for the next message to share. Most queues
// have one.
type kinds struct {
	recent [8]*kind
	oldest int
}

// of returns the kind of a message to push.
func (k *kinds) of(in *engine.Message) *kind {
	for _, known := range k.recent {
		if known != nil && known.is(in) {
			return known
		}
	}
	made := &kind{in.Policy, strings.Clone(in.ContentType)}
	made.Backoff = copied(in.Backoff)
	k.recent[k.oldest] = made
	k.oldest = (k.oldest + 1) % len(k.recent)
	return made
}

func (k *kind) is(in *engine.Message) bool {
	p := &in.Policy
	return k.Priority == p.Priority && k.MaxAttempts == p.MaxAttempts && k.TTR == p.TTR &&
		k.ExpireAfter == p.ExpireAfter && k.contentType == in.ContentType && slices.Equal(k.Backoff, p.Backoff)
}
