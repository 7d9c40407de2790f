package servertest

import (
	"slices"
	"sync"
	"testing"
)

// Main returns what runs the tests of a package, for its TestMain, and then cleans up
// what these have left for one another:
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

// after is what Main does after the tests.
var after struct {
	mu       sync.Mutex
	runs     bool
	cleanups []func()
}

// Lasting returns a test that is t until that ends, but whose Cleanup is done by Main,
// without which t fails: what it starts lasts for the tests that follow. What fails it
// later panics.
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

// Cleanup has Main call f.
func (lasting) Cleanup(f func()) {
	after.mu.Lock()
	defer after.mu.Unlock()
	after.cleanups = append(after.cleanups, f)
}

// Failed says that nothing needs to be shown at the end.
func (lasting) Failed() bool { return false }
