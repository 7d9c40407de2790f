package vfstest

import "os"

// Thorough is n, or many times of it with TARRY_TEST_THOROUGH=1, where time does not matter.
func Thorough(n, times int) int {
	if os.Getenv("TARRY_TEST_THOROUGH") != "" {
		return n * times
	}
	return n
}
