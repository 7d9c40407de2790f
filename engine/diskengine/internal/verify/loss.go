package verify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
)

// Loss is one thing that a salvage gives up.
type Loss struct {
	File   string
	Offset int64 // in the file; -1: the whole file
	What   string

	// Messages is how many undeleted messages, or if Keys remembered keys, or if Listed finished
	// messages, are lost with it; -1: not known.
	Messages int64
	Keys     bool
	Listed   bool

	Queues   []string    // the queues they were in, as far as known
	From, To time.Time   // they were due, or died, between these; zero: not known
	IDs      []engine.ID // at most MaxLostIDs of their ids, as far as known
	Again    bool        // messages that were acked or cancelled may be handed out again
}

// MaxLostIDs is the most ids of a Loss.
const MaxLostIDs = 1000

// String describes the loss in one line.
func (l *Loss) String() string {
	var b strings.Builder
	b.WriteString(l.File)
	if l.Offset >= 0 {
		fmt.Fprintf(&b, ", offset %d", l.Offset)
	}
	what := "message"
	if l.Keys {
		what = "remembered key"
	}
	if l.Listed {
		what = "finished message"
	}
	if l.Messages != 1 {
		what += "s"
	}
	fmt.Fprintf(&b, ": %s", l.What)
	switch {
	case l.Messages > 0:
		fmt.Fprintf(&b, ": %d %s lost", l.Messages, what)
	case l.Messages < 0:
		fmt.Fprintf(&b, ": it is not known how many %s are lost", what)
	case !l.Again:
		fmt.Fprintf(&b, ": no %s lost", what)
	}
	if len(l.Queues) > 0 {
		fmt.Fprintf(&b, " of %s", strings.Join(l.Queues, ", "))
	}
	if !l.From.IsZero() {
		fmt.Fprintf(&b, ", due from %s to %s", l.From.Format(time.RFC3339), l.To.Format(time.RFC3339))
	}
	if n := len(l.IDs); n > 0 {
		fmt.Fprintf(&b, ", ids %s", ids(l.IDs[:min(n, 10)]))
		if n > 10 {
			b.WriteString(" and others")
		}
	}
	if l.Again {
		b.WriteString("; what was acked or cancelled there may be handed out again")
	}
	return b.String()
}

func ids(all []engine.ID) string {
	var b strings.Builder
	for i, id := range all {
		if i > 0 {
			b.WriteString(" ")
		}
		fmt.Fprint(&b, uint64(id))
	}
	return b.String()
}

// lossOf is the loss of so many entries of an sstable.
func (s *salvage) lossOf(p *part, offset int64, what string, messages int64) Loss {
	return Loss{File: sstable.Name(s.tablesDir, p.number), Offset: offset, What: what, Messages: messages,
		Keys: p.area() == memtable.Finished, Listed: p.area() == memtable.Listed}
}

// lostTable notes the loss of a whole sstable.
func (s *salvage) lostTable(p *part, what string) {
	messages := int64(-1)
	if !s.rebuilt {
		messages = int64(p.is.Alive)
	}
	s.losses = append(s.losses, s.lossOf(p, -1, what, messages))
}

// holes notes the losses of the parts of an sstable that cannot be read.
func (s *salvage) holes(p *part) error {
	of := p.salvaged
	lost := map[int][]engine.ID{}
	err := of.Lost(func(id uint64, pos uint32) {
		i := slices.IndexFunc(of.Holes, func(h sstable.Hole) bool { return h.Counted && pos >= h.From && pos < h.To })
		if of.Alive(pos) && len(lost[i]) < MaxLostIDs {
			lost[i] = append(lost[i], engine.ID(memtable.MessageOf(id)))
		}
	})
	if err != nil {
		return err
	}
	for i, h := range of.Holes {
		l := s.lossOf(p, h.Offset, "entries that cannot be read", -1)
		l.IDs = lost[i]
		if h.Counted {
			l.Messages = int64(of.Count(h.From, h.To))
		}
		if h.After != nil && h.Before != nil && h.After.Queue == h.Before.Queue {
			l.Queues = []string{s.queueName(h.After.Queue)}
			l.From, l.To = time.UnixMilli(h.After.At).UTC(), time.UnixMilli(h.Before.At).UTC()
		} else {
			for _, at := range []*sstable.Place{h.After, h.Before} {
				if at != nil {
					l.Queues = append(l.Queues, s.queueName(at.Queue))
				}
			}
			l.Queues = slices.Compact(l.Queues)
			if len(l.Queues) > 0 {
				l.Queues[len(l.Queues)-1] += " or between them"
			}
		}
		s.losses = append(s.losses, l)
	}
	return nil
}

// queueName is how a line names a queue.
func (s *salvage) queueName(number uint32) string {
	if name, ok := s.names[number]; ok {
		return "queue " + name
	}
	return fmt.Sprintf("queue number %d", number)
}
