package redistest

import (
	"testing"
	"time"
)

// patience is how long anything is waited for.
const patience = 30 * time.Second

// await asks at growing intervals until ask finds nothing wrong any more.
func await(t testing.TB, what string, ask func() error) {
	t.Helper()
	giveUp := time.After(patience)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-giveUp:
			t.Fatalf("waited %v in vain for %s: %v", patience, what, err)
		case <-time.After(wait):
		}
	}
}
