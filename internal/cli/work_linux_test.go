package cli

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// A worker that is killed takes its commands along: their messages are handled elsewhere once
// the leases lapse.
func TestWorkKilledTakesItsCommandsAlong(t *testing.T) {
	w, _ := served(t, "mem:")
	w.must(t, "push", "mail", "x")
	cmd := exec.Command(os.Args[0], "work", "mail", "--quiet", "--", "sh", "-c", "echo began; exec sleep 1000")
	cmd.Env = append(append(os.Environ(), "TARRY_TEST_MAIN=1"), w.env...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	out := bufio.NewReader(stdout)
	giveUp := time.AfterFunc(patience, func() { _ = stdout.Close() })
	defer giveUp.Stop()
	if line, err := out.ReadString('\n'); err != nil || line != "began\n" {
		t.Fatalf("the command prints %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The output ends when nobody holds its pipe any more.
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
		t.Errorf("the command lives on: %q, %v", rest, err)
	}
}
