package memtable

import "golang.org/x/sys/unix"

// populate has the system provide the pages of b, from mapMemory, at once. Before Linux 5.14
// it has no effect, and each page comes when it is first touched.
func populate(b []byte) { _ = unix.Madvise(b, unix.MADV_POPULATE_WRITE) }
