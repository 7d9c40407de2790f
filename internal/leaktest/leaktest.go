// Package leaktest finds goroutines that tests leave behind.
package leaktest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines may take to end. A busy machine may not run them for
// seconds, and goleak alone waits for less than one.
const patience = time.Minute

// Main runs the tests of a package and ends the process. If the tests passed but goroutines
// are left over, it fails.
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
