package wire

import (
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/schema"
)

// AppendSettlements appends a request to settle.
func AppendSettlements(b []byte, all []engine.Settlement) []byte {
	return append(appendAll(append(b, `{"settlements":`...), all, appendSettlement), '}')
}

func appendSettlement(b []byte, s *engine.Settlement) []byte {
	token := s.Token
	if token == "" {
		token = "-" // names no lease either, and does not count as missing
	}
	b = appendText(b, `{"lease":`, token)
	b = appendWord(b, `,"do":`, s.Do.String())
	if s.When != nil && (s.Do == engine.Retry || s.Do == engine.Snooze) {
		b = appendWhenOrNow(b, *s.When)
	}
	if s.TTR > 0 && s.Do == engine.Extend {
		b = appendDuration(b, `,"ttr":`, s.TTR)
	}
	if s.Reason != "" && (s.Do == engine.Retry || s.Do == engine.Bury) {
		b = appendText(b, `,"reason":`, s.Reason)
	}
	return append(b, '}')
}

var (
	// Settling is the shape of a request to settle.
	Settling = asked("Settle", "What became of leased messages.",
		must("settlements", schema.Array(settlementFields.Ref(), engine.MaxBatch), ""))
	settlementFields = asked("Settlement", "What became of a leased message.",
		must("lease", isText, "what the message came with"),
		must("do", isAction, actionDoc),
		may("delay", isDuration, "of retry and snooze: until when it rests"),
		may("due", isTime, "of retry and snooze, instead of delay"),
		may("ttr", isDuration, "of extend: "+ttrDoc),
		may("reason", isText, "of retry and bury: why"))
)

// Settlements reads a request to settle. bad has the error of each settlement, or nil.
func (r *Reader) Settlements() (all []engine.Settlement, bad []error) {
	r.batch(Settling, func() {
		all = append(all, r.settlement())
		bad = append(bad, r.wrong())
	})
	return all, bad
}

const actionDoc = `ack: handled, it is gone
retry: failed; again after delay, else after the message's backoff, or dead when its attempts are used up
snooze: not now; the attempt does not count
release: not started; the attempt does not count
bury: hopeless, it is dead
extend: still at it; the lease ends ttr from now`

func (r *Reader) settlement() (s engine.Settlement) {
	var when engine.When
	if !r.open("settlement", '{') {
		return s
	}
	var seen seen
	for f := r.next(settlementFields.names, &seen); f >= 0; f = r.next(settlementFields.names, &seen) {
		switch f {
		case 0:
			s.Token = r.text("lease")
		case 1:
			s.Do = r.action()
		case 2:
			when.In = r.duration("delay")
		case 3:
			when.At = r.time("due")
		case 4:
			s.TTR = r.ttr("ttr")
		case 5:
			s.Reason = r.text("reason")
		}
	}
	const lease, do, delay, due, ttr, reason = 1, 2, 4, 8, 16, 32
	switch {
	case seen&lease == 0:
		r.Wrong("lease: is missing")
	case seen&do == 0:
		r.Wrong("do: is missing")
	case seen&delay != 0 && seen&due != 0:
		r.Wrong("delay: give delay or due, not both")
	case seen&(delay|due) != 0 && s.Do != engine.Retry && s.Do != engine.Snooze:
		r.Wrong("delay: is for retry and snooze only")
	case seen&(delay|due) == 0 && s.Do == engine.Snooze:
		r.Wrong("delay: is missing; a snooze needs one")
	case seen&ttr != 0 && s.Do != engine.Extend:
		r.Wrong("ttr: is for extend only")
	case seen&reason != 0 && s.Do != engine.Retry && s.Do != engine.Bury:
		r.Wrong("reason: is for retry and bury only")
	}
	if seen&(delay|due) != 0 {
		s.When = &when
	}
	return s
}

func (r *Reader) action() engine.Action {
	name, ok := r.bytes("do")
	do, err := engine.ParseAction(string(name))
	if ok && err != nil {
		r.Wrong("do: must be ack, retry, snooze, release, bury or extend, not %q", engine.Clip(string(name)))
	}
	return do
}

// Settled appends the result of a settlement.
func (r *Results) Settled(token string, s *engine.Settled) {
	r.begin()
	r.B = appendText(r.B, `{"lease":`, clipLong(token))
	r.ok(s.Err)
	if s.Err == nil {
		r.B = appendWord(r.B, `,"state":`, s.State.String())
		if !s.Until.IsZero() {
			r.B = appendTime(r.B, `,"until":`, s.Until)
		}
	}
	r.B = append(r.B, '}')
}

// SettleResults is the shape of the answer to a request to settle.
var (
	SettleResults = results("SettleResults", "What became of each settlement.", settledFields.Ref())
	settledFields = answered("SettleResult", "What became of a settlement.",
		must("lease", isText, ""),
		must("ok", isFlag, "it was settled"),
		may("state", schema.Words(words(engine.Gone, engine.Finished)...), "of the message now"),
		may("until", isInstant, "when the message is due, or the lease ends"),
		may("error", errorFields.Ref(), "why not"))
)

// Settled reads the result of one settlement. Err is read as an *Error.
func (r *Reader) Settled() (s engine.Settled) {
	r.fields("result", settledFields, func(f int) {
		switch f {
		case 2:
			s.State = r.state("state")
		case 3:
			s.Until = r.time("until")
		case 4:
			s.Err = r.failure()
		default:
			r.skip()
		}
	})
	return s
}

// appendWhen appends a delay or due time after other fields, or nothing for now.
func appendWhen(b []byte, w engine.When) []byte {
	switch {
	case !w.At.IsZero():
		// With all its digits: rounding is up to the engine.
		b = append(b, `,"due":"`...)
		b = w.At.UTC().AppendFormat(b, time.RFC3339Nano)
		return append(b, '"')
	case w.In > 0:
		return appendDuration(b, `,"delay":`, w.In)
	}
	return b
}

func appendWhenOrNow(b []byte, w engine.When) []byte {
	if w.At.IsZero() && w.In <= 0 {
		return append(b, `,"delay":"0s"`...)
	}
	return appendWhen(b, w)
}
