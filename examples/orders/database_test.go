package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

// onDatabases runs a test with the URL of an empty database of each kind.
func onDatabases(t *testing.T, test func(t *testing.T, url string)) {
	t.Parallel()
	for name, shared := range map[string]func(testing.TB) string{"PostgreSQL": pgtest.Shared, "MariaDB": mysqltest.Shared} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, shared(t))
		})
	}
}

func TestDatabase(t *testing.T) {
	_, want := plainPass(t, smallFile)
	onDatabases(t, func(t *testing.T, url string) {
		args := []string{"--file", smallFile, "--messages", url, "--store", t.TempDir()}
		checkReport(t, runJSON(t, args...), want)
		checkReport(t, runJSON(t, args...), want) // nothing left to do
	})
}

// TestDatabaseWithRealOrders replays the first orders of the real file.
func TestDatabaseWithRealOrders(t *testing.T) {
	all, err := os.ReadFile(realFile(t))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(all, []byte("\n"))
	name := filepath.Join(t.TempDir(), "orders.csv")
	if err := os.WriteFile(name, bytes.Join(lines[:min(len(lines), 1200)], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	_, want := plainPass(t, name)
	onDatabases(t, func(t *testing.T, url string) {
		got := runJSON(t, "--file", name, "--messages", url)
		checkReport(t, got, want)
		t.Logf("%+v", got)
	})
}

// TestDatabaseKill9 is TestKill9. What the program had leased when it was killed comes back
// when that lease is over, in virtual time.
func TestDatabaseKill9(t *testing.T) {
	_, want := plainPass(t, smallFile)
	onDatabases(t, func(t *testing.T, url string) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rnd := rand.New(rand.NewPCG(seed, 0))
		dir := t.TempDir()
		for kills := 0; kill(t, 1+rnd.IntN(34), "--file", smallFile, "--store", dir, "--messages", url); {
			if kills++; kills == 100 {
				t.Fatal("the replay gets nowhere")
			}
		}
		checkReport(t, runJSON(t, "--file", smallFile, "--store", dir, "--messages", url), want)
	})
}

func TestDatabaseOfAnotherKind(t *testing.T) {
	checkFails(t, exitUsage, "--messages is postgres://", "--file", smallFile, "--messages", "redis://127.0.0.1:1")
	checkFails(t, exitUnavailable, "", "--file", smallFile, "--messages", "postgres://postgres@127.0.0.1:1/postgres")
}
