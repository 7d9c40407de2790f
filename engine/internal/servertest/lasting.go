package servertest

import (
	"slices"
	"sync"
	"testing"
)

// Main runs the tests of a package, for its TestMain, and then stops the shared servers:
//
//	func TestMain(m *testing.M) { leaktest.Main(servertest.Main(m)) }
func Main(m *testing.M) interface{ Run() int } { return runner{m} }

type runner struct{ m *testing.M }

// Run runs the tests, and cleans up.
func (r runner) Run() int {
	after.mu.Lock()
	after.runs = true
	after.mu.Unlock()
	defer func() {
		for _, f := range slices.Backward(after.cleanups) {
			f()
		}
	}()
	return r.m.Run()
}

// after holds the cleanups of Main.
var after struct {
	mu       sync.Mutex
	runs     bool
	cleanups []func()
}

// Lasting returns a test like t whose cleanups run in Main, so that what it starts lasts for
// later tests. Without Main, t fails. A failure after the end of t panics.
func Lasting(t testing.TB) testing.TB {
	t.Helper()
	after.mu.Lock()
	defer after.mu.Unlock()
	if !after.runs {
		t.Fatal("what lasts beyond its test needs func TestMain(m *testing.M) { leaktest.Main(servertest.Main(m)) }, or what stands for it")
	}
	return lasting{t}
}

type lasting struct{ testing.TB }

// Cleanup makes Main call f.
func (lasting) Cleanup(f func()) {
	after.mu.Lock()
	defer after.mu.Unlock()
	after.cleanups = append(after.cleanups, f)
}

// Failed returns false, so that nothing is logged at the end.
func (lasting) Failed() bool { return false }
