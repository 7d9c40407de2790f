package tarrytest

import "testing"

// SetMostHandled sets how many messages one call may have handled, until the test ends.
func SetMostHandled(t *testing.T, n int) {
	before := mostHandled
	mostHandled = n
	t.Cleanup(func() { mostHandled = before })
}
