package redistest

import (
	"os"
	"testing"
)

// Shared returns the URL of a server for a test that only needs some Redis: the
// one that the environment variable TARRY_TEST_REDIS_URL names, which may hold
// anything, or else one started for this test, which takes some 20 ms.
func Shared(t testing.TB) string {
	t.Helper()
	if url := os.Getenv("TARRY_TEST_REDIS_URL"); url != "" {
		return url
	}
	return Start(t).URL()
}
