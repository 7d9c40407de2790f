package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

// killAtEnv makes the test binary the program itself, which kills itself with
// SIGKILL after so many steps; 0: never.
const killAtEnv = "TARRY_ORDERS_KILL_AT"

func TestMain(m *testing.M) {
	at, ok := os.LookupEnv(killAtEnv)
	if !ok {
		os.Exit(pgtest.Main(m).Run())
	}
	n, err := strconv.Atoi(at)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitUsage)
	}
	p := &program{stdout: os.Stdout, stderr: os.Stderr, after: func(string) error {
		if n--; n == 0 {
			if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
				return err
			}
			select {} // the signal may take a moment
		}
		return nil
	}}
	os.Exit(p.run(context.Background(), os.Args[1:]))
}

// errStop ends a replay in the middle.
var errStop = errors.New("stopped by the test")

// stopAfter returns a hook that ends a replay after n steps.
func stopAfter(n int) func(string) error {
	return func(string) error {
		if n--; n == 0 {
			return errStop
		}
		return nil
	}
}
