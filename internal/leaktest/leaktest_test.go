package leaktest

import (
	"testing"
	"time"
)

// TestNone: what ends is awaited, also when that takes longer than goleak alone would wait.
func TestNone(t *testing.T) {
	go time.Sleep(2 * time.Second)
	None(t)
}
