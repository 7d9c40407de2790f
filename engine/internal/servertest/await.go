package servertest

import (
	"testing"
	"time"
)

// Patience is how long anything is waited for.
const Patience = 30 * time.Second

// Await asks at growing intervals until ask finds nothing wrong any more, and fails the
// test with what it finds then after Patience.
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
