//go:build unix

package memtable

import "golang.org/x/sys/unix"

// mapMemory returns n bytes from the system, or nil.
func mapMemory(n int) []byte {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	return b
}

// unmapMemory gives back memory from mapMemory. Memory from Go's heap it leaves to the
// collector.
func unmapMemory(b []byte) {
	_ = unix.Munmap(b) // EINVAL: b was not mapped
}
