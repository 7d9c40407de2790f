package beanstalk_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// clients is the folder with the clients of Node that make beanstalk-clients installs.
const clients = "testdata/clients"

// node returns the path of Node. If it or the clients are missing, the test is skipped, or fails with
// TARRY_TEST_BEANSTALK_CLIENTS=require.
func node(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(clients + "/node_modules/mocha")
	}
	if err == nil {
		return path
	}
	if os.Getenv("TARRY_TEST_BEANSTALK_CLIENTS") == "require" {
		t.Fatalf("%v, and TARRY_TEST_BEANSTALK_CLIENTS=require: run make beanstalk-clients", err)
	}
	t.Skipf("%v: make beanstalk-clients installs the clients", err)
	return ""
}

func port(t *testing.T, at *site) string {
	t.Helper()
	_, port, err := net.SplitHostPort(at.addr)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestNodeClients drives jackd, node-beanstalk and beanstalkd of npm.
func TestNodeClients(t *testing.T) {
	t.Parallel()
	path := node(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run := exec.CommandContext(ctx, path, clients+"/clients.mjs", port(t, start(t, kind(), settings{})))
	out, err := run.CombinedOutput()
	if err != nil || strings.Count(string(out), " has done all\n") != 3 {
		t.Fatalf("%v:\n%s", err, out)
	}
}

// TestFivebeans runs the tests that fivebeans' package has of its client.
func TestFivebeans(t *testing.T) {
	t.Parallel()
	node := node(t)
	dir, at := t.TempDir(), port(t, start(t, kind(), settings{}))
	if err := os.CopyFS(dir+"/fivebeans", os.DirFS(clients+"/node_modules/fivebeans")); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs(clients + "/node_modules")
	if err == nil {
		err = os.Symlink(modules, dir+"/node_modules")
	}
	if err != nil {
		t.Fatal(err)
	}
	// Its tests delay a job by a second and then look at it; a busy machine needs longer between the two.
	changed := strings.NewReplacer("11300", at, "release(testjobid, 1, 1,", "release(testjobid, 1, 5,", "timeout(3000)", "timeout(60000)")
	for _, name := range []string{"test/test-client.js", "lib/client.js"} {
		name = filepath.Join(dir, "fivebeans", name)
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(name, []byte(changed.Replace(string(text))), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run := exec.CommandContext(ctx, node, modules+"/mocha/bin/mocha.js", "--exit", "--timeout", "60000", "test/test-client.js")
	run.Dir = dir + "/fivebeans"
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "29 passing") {
		t.Fatalf("%v:\n%s", err, out)
	}
}
