package check

import "github.com/tarryhq/tarry/engine/diskengine/internal/record"

// nameReader takes the names of queues from a log.
type nameReader struct {
	record.Applier
	names map[uint32]string
}

func (n *nameReader) Put(*record.Put) error             { return nil }
func (n *nameReader) Move(*record.Move) error           { return nil }
func (n *nameReader) Lease(*record.Lease) error         { return nil }
func (n *nameReader) Extend(*record.Extend) error       { return nil }
func (n *nameReader) Gone(*record.Gone) error           { return nil }
func (n *nameReader) Finish(*record.Finish) error       { return nil }
func (n *nameReader) Configure(*record.Configure) error { return nil }
func (n *nameReader) Pause(*record.Pause) error         { return nil }
func (n *nameReader) Purge(*record.Purge) error         { return nil }
func (n *nameReader) Spare(*record.Spare) error         { return nil }

// Name notes a name; one that is taken away is still one to tell of.
func (n *nameReader) Name(x *record.Name) error {
	if len(x.Name) > 0 {
		n.names[x.Queue] = string(x.Name)
	}
	return nil
}
