package server

import (
	"net/http"

	"github.com/tarryhq/tarry/engine"
)

var (
	settleFields     = []string{"settlements"}
	settlementFields = []string{"lease", "do", "delay", "ttr", "reason", "due"}
	actions          = map[string]engine.Action{
		"ack": engine.Ack, "retry": engine.Retry, "snooze": engine.Snooze,
		"release": engine.Release, "bury": engine.Bury, "extend": engine.Extend,
	}
)

// settlement reads one settlement.
func (in *input) settlement() (s engine.Settlement) {
	var seen uint32
	if !in.open("settlement", '{') {
		return s
	}
	var when engine.When
	for {
		switch in.next(settlementFields, &seen) {
		case 0:
			s.Token = in.text("lease")
			continue
		case 1:
			do, ok := in.bytes("do")
			if s.Do = actions[string(do)]; ok && s.Do == 0 {
				in.wrong("do: must be ack, retry, snooze, release, bury or extend, not %q", clip(string(do)))
			}
			continue
		case 2:
			when.In = in.duration("delay")
			continue
		case 3:
			s.TTR = in.ttr("ttr")
			continue
		case 4:
			s.Reason = in.text("reason")
			continue
		case 5:
			when.At = in.instant("due")
			continue
		}
		break
	}
	const lease, do, delay, ttr, reason, due = 1, 2, 4, 8, 16, 32
	switch {
	case seen&lease == 0:
		in.wrong("lease: is missing")
	case seen&do == 0:
		in.wrong("do: is missing")
	case seen&delay != 0 && seen&due != 0:
		in.wrong("delay: give delay or due, not both")
	case seen&(delay|due) != 0 && s.Do != engine.Retry && s.Do != engine.Snooze:
		in.wrong("delay: is for retry and snooze only")
	case seen&(delay|due) == 0 && s.Do == engine.Snooze:
		in.wrong("delay: is missing; a snooze needs one")
	case seen&ttr != 0 && s.Do != engine.Extend:
		in.wrong("ttr: is for extend only")
	case seen&reason != 0 && s.Do != engine.Retry && s.Do != engine.Bury:
		in.wrong("reason: is for retry and bury only")
	}
	if seen&(delay|due) != 0 {
		s.When = &when
	}
	return s
}

// settle ends or extends leases, each alone.
func (s *Server) settle(x *exchange, r *http.Request) error {
	in, err := s.read(x, r)
	if err != nil {
		return err
	}
	var all []engine.Settlement
	var bad []*failure
	in.elements(settleFields[0], func() {
		all = append(all, in.settlement())
		bad = append(bad, in.bad)
	})
	if err := in.failed(); err != nil {
		return err
	}
	if err := x.hold(len(all) * itemSize); err != nil {
		return err
	}
	in.free()
	out := make([]engine.Settled, len(all))
	good, at := make([]engine.Settlement, 0, len(all)), make([]int, 0, len(all))
	for i, f := range bad {
		if f != nil {
			out[i].Err = f
		} else {
			good, at = append(good, all[i]), append(at, i)
		}
	}
	got, err := s.c.Settle(r.Context(), good)
	if err != nil {
		return err
	}
	for j, g := range got {
		out[at[j]] = g
	}
	a := newAnswer()
	defer a.free()
	a.b = append(a.b, `{"results":[`...)
	failed := 0
	for i, o := range out {
		if i > 0 {
			a.b = append(a.b, ',')
		}
		a.b = append(a.b, `{"lease":`...)
		a.b = appendString(a.b, clipLong(all[i].Token))
		a.b = appendOK(a.b, o.Err, &failed)
		if o.Err == nil {
			a.b = append(a.b, `,"state":"`...)
			a.b = append(a.b, o.State.String()...)
			a.b = append(a.b, '"')
			if !o.Until.IsZero() {
				a.b = append(a.b, `,"until":`...)
				a.b = appendTime(a.b, o.Until)
			}
		}
		a.b = append(a.b, '}')
	}
	a.endResults(failed)
	return s.send(x, a, http.StatusOK)
}
