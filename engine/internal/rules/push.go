package rules

import (
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Holder is what a push has to know of the message that has its key.
type Holder struct {
	State  engine.State  // Gone: no message has it
	Lease  codec.Token   // the newest, while it settles the message; zero: none does
	Ending engine.Ending // if Finished
	Ended  int64
}

// Push returns what a push becomes that meets a holder of its key: Created, Replaced or Kept;
// or why it is refused. A refusal with Created leaves the holder out of the answer.
func Push(in *engine.Message, h *Holder) (engine.Outcome, error) {
	ref := engine.Ref{Queue: in.Queue, Key: in.Key}
	switch {
	case in.Token != "" && h.Lease.Is(in.Token):
		return engine.Replaced, nil
	case in.Token != "":
		return engine.Created, engine.Refuse("push", ref, engine.ErrLeaseLost)
	case h.State == engine.Gone:
		return engine.Created, nil
	case in.OnConflict == engine.Keep:
		return engine.Kept, nil
	case h.State == engine.Finished && in.OnConflict == engine.Reject:
		return 0, engine.RefuseFinished(ref, h.Ending, Instant(h.Ended))
	case h.State == engine.Finished:
		return engine.Created, nil
	case in.OnConflict == engine.Reject:
		return 0, engine.Refuse("push", ref, engine.ErrExists)
	case h.State == engine.Leased:
		return 0, engine.Refuse("push", ref, engine.ErrLeased)
	}
	return engine.Replaced, nil
}
