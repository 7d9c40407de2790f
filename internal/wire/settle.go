package wire

import (
	"cmp"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Settling is a request to settle.
var Settling = requestObject("Settle", "What became of leased messages.",
	required("settlements", items(settlementFields, "settlement"), itself, ""))

// rests reports whether a settlement says when its message is due again.
func rests(s *engine.Settlement) bool {
	return s.When != nil && (s.Do == engine.Retry || s.Do == engine.Snooze)
}

func when(s *engine.Settlement) *engine.When {
	if s.When == nil {
		s.When = new(engine.When)
	}
	return s.When
}

// asToken writes something for no token, since an empty one counts as missing.
var asToken = scalar(isText, (*Reader).text, func(b []byte, token string) []byte { return AppendString(b, cmp.Or(token, "-")) })

var settlementFields = requestObject("Settlement", "What became of a leased message.",
	required("lease", asToken, func(s *engine.Settlement) *string { return &s.Token }, "what the message came with"),
	required("do", asAction, func(s *engine.Settlement) *engine.Action { return &s.Do }, actionDoc),
	optional("delay", asDuration, func(s *engine.Settlement) *time.Duration { return &when(s).In }, "of retry and snooze: until when it rests").
		unless(func(s *engine.Settlement) bool { return !rests(s) || !s.When.At.IsZero() }),
	optional("due", asExact, func(s *engine.Settlement) *time.Time { return &when(s).At }, "of retry and snooze, instead of delay").
		unless(func(s *engine.Settlement) bool { return !rests(s) || s.When.At.IsZero() }),
	optional("ttr", asTTR, func(s *engine.Settlement) *time.Duration { return &s.TTR }, "of extend: "+ttrDoc).
		unless(func(s *engine.Settlement) bool { return s.TTR <= 0 || s.Do != engine.Extend }),
	optional("reason", asText, func(s *engine.Settlement) *string { return &s.Reason }, "of retry and bury: why").
		unless(func(s *engine.Settlement) bool { return s.Reason == "" || s.Do != engine.Retry && s.Do != engine.Bury }),
	optional("priority", asPriority, func(s *engine.Settlement) **uint32 { return &s.Priority }, "of retry, snooze, release and bury: the message's own from now on").
		unless(func(s *engine.Settlement) bool {
			return s.Priority == nil || s.Do == engine.Ack || s.Do == engine.Extend
		}),
).checked(func(r *Reader, got Fields, s *engine.Settlement) {
	const delay, due, ttr, reason, priority = 2, 3, 4, 5, 6
	said := got.Has(delay) || got.Has(due)
	switch {
	case got.Has(delay) && got.Has(due):
		r.Wrong("delay: give delay or due, not both")
	case said && s.Do != engine.Retry && s.Do != engine.Snooze:
		r.Wrong("delay: is for retry and snooze only")
	case !said && s.Do == engine.Snooze:
		r.Wrong("delay: is missing; a snooze needs one")
	case got.Has(ttr) && s.Do != engine.Extend:
		r.Wrong("ttr: is for extend only")
	case got.Has(reason) && s.Do != engine.Retry && s.Do != engine.Bury:
		r.Wrong("reason: is for retry and bury only")
	case got.Has(priority) && (s.Do == engine.Ack || s.Do == engine.Extend):
		r.Wrong("priority: is for retry, snooze, release and bury only")
	}
})

const actionDoc = `ack: handled, it is gone
retry: failed; again after delay, else after the message's backoff, or dead when its attempts are used up
snooze: not now; the attempt does not count
release: not started; the attempt does not count
bury: hopeless, it is dead
extend: still at it; the lease ends ttr from now`

// Settled is the result of a settlement. Err is read as an *Error, and Token is not read.
type Settled struct {
	Token string
	engine.Settled
}

// SettleResult is the result of a settlement, and SettleResults describes the answer to a
// request to settle.
var (
	SettleResult = answerObject("SettleResult", "What became of a settlement.",
		required("lease", ignored(isText, AppendString), func(s *Settled) *string { return &s.Token }, ""),
		required("ok", ignored(isFlag, func(b []byte, err error) []byte { return strconv.AppendBool(b, err == nil) }), func(s *Settled) *error { return &s.Err }, "it was settled"),
		optional("state", asState.described(wordsSchema(words(engine.Gone, engine.Finished)...)), func(s *Settled) *engine.State { return &s.State }, "of the message now").
			unless(func(s *Settled) bool { return s.Err != nil }),
		optional("until", asInstant, func(s *Settled) *time.Time { return &s.Until }, "when the message is due, or the lease ends"),
		optional("error", asFailure, func(s *Settled) *error { return &s.Err }, "why not"))
	SettleResults = results("SettleResults", "What became of each settlement.", SettleResult.Ref())
)
