package servertest

import (
	"testing"
	"time"
)

// Patience bounds the waits of tests for servers.
const Patience = time.Minute

// Await calls ask at growing intervals until it returns nil. After Patience, the test fails with
// the last error.
func Await(t testing.TB, what string, ask func() error) {
	t.Helper()
	giveUp := time.After(Patience)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-giveUp:
			t.Fatalf("waited %v in vain for %s: %v", Patience, what, err)
		case <-time.After(wait):
		}
	}
}
