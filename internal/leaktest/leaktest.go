// Package leaktest finds goroutines that tests leave behind.
package leaktest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines have for their end. A busy machine may give them no
// processor for seconds, and goleak alone waits for less than one.
const patience = time.Minute

// Main runs the tests of a package and ends the process. It fails if goroutines are left over
// by tests that passed.
func Main(m interface{ Run() int }, options ...goleak.Option) {
	code := m.Run()
	if code == 0 {
		if err := find(options); err != nil {
			fmt.Fprintln(os.Stderr, "the tests passed, but", err)
			code = 1
		}
	}
	os.Exit(code)
}

// None fails the test if goroutines are left over.
func None(t testing.TB, options ...goleak.Option) {
	t.Helper()
	if err := find(options); err != nil {
		t.Error(err)
	}
}

func find(options []goleak.Option) error {
	for end := time.Now().Add(patience); ; {
		err := goleak.Find(options...)
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
