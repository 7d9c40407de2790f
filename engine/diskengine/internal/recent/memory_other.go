//go:build !unix

package recent

func mapMemory(int) []byte { return nil }

func unmapMemory([]byte) {}
