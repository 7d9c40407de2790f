package timer

// Handle names one entry of the structure that returned it. It is a plain
// value: copy it, compare it, keep it beyond the life of its entry. A handle is
// stale once its entry has fired or was cancelled: every call returns false for
// it, even when the entry's memory is in use again. (The handle has a
// generation of 32 bits, which counts the entries ever scheduled. So a stale
// handle names a live entry only if that has the same memory and was scheduled
// exactly a multiple of 4,294,967,295 entries later.)
//
// Each structure begins to count at a random number. So a handle is almost always
// stale in another structure: one in 4,294,967,295 names an entry there.
//
// The zero Handle is never valid.
type Handle uint64

func newHandle(index, gen uint32) Handle { return Handle(uint64(gen)<<32 | uint64(index)) }

func (h Handle) index() uint32 { return uint32(h) }
func (h Handle) gen() uint32   { return uint32(h >> 32) }
