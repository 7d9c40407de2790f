package servertest

import "os"

// Shared returns the URL of a server for a test that needs just any of its kind: the
// one that an environment variable names, such as TARRY_TEST_REDIS_URL, which may hold
// anything, or else that of one which start starts.
func Shared(variable string, start func() (url string)) string {
	if url := os.Getenv(variable); url != "" {
		return url
	}
	return start()
}
