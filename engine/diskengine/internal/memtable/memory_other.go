//go:build !unix

package memtable

func mapMemory(int) []byte { return nil }

func unmapMemory([]byte) {}
