package timer

// Handle names one entry of the structure that returned it. It is a plain
// value: copy it, compare it, keep it beyond the life of its entry. A handle
// whose entry has fired or was cancelled is stale: every call answers false
// for it, also when the entry's place is in use again. (The generation in it
// has 32 bits and counts what was ever scheduled, so a stale handle could be
// taken for a live one only when exactly a multiple of 4,294,967,295 entries
// later the same place is filled.)
//
// Each structure begins to count anywhere, so a handle is as good as always
// stale in any structure but its own: one in 4,294,967,295 names a stranger's
// entry there.
//
// The zero Handle is never valid.
type Handle uint64

func newHandle(index, gen uint32) Handle { return Handle(uint64(gen)<<32 | uint64(index)) }

func (h Handle) index() uint32 { return uint32(h) }
func (h Handle) gen() uint32   { return uint32(h >> 32) }
