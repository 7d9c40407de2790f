package disktest

import "os"

// Thorough is n, or times as much if TARRY_TEST_THOROUGH is set, for runs that may take long.
func Thorough(n, times int) int {
	if os.Getenv("TARRY_TEST_THOROUGH") != "" {
		return n * times
	}
	return n
}
