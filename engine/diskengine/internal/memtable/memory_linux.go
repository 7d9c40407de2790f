package memtable

import "golang.org/x/sys/unix"

// populate has the system give the pages of what mapMemory returned at once. Before Linux 5.14 it does not, and
// each comes when it is touched.
func populate(b []byte) { _ = unix.Madvise(b, unix.MADV_POPULATE_WRITE) }
