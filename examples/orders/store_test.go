package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStoreOfAnotherFile(t *testing.T) {
	dir := t.TempDir()
	runJSON(t, "--file", smallFile, "--store", dir)
	other := filepath.Join(t.TempDir(), "other.csv")
	if err := os.WriteFile(other, []byte(headerLine+"a,2018-03-01T12:00:00Z,,,\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	checkFails(t, exitUsage, "belongs to the replay of another file", "--file", other, "--store", dir)
}

func TestStoreIsNotOurs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "letter.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	checkFails(t, exitUsage, "holds something that is not a replay's", "--file", smallFile, "--store", dir)
	checkFails(t, exitFailed, "not a directory", "--file", smallFile, "--store", filepath.Join(dir, "letter.txt"))
}

func TestStoreWithoutItsMessages(t *testing.T) {
	dir := t.TempDir()
	runJSON(t, "--file", smallFile, "--store", dir)
	if err := os.RemoveAll(filepath.Join(dir, messagesName)); err != nil {
		t.Fatal(err)
	}
	checkFails(t, exitFailed, "the messages are missing", "--file", smallFile, "--store", dir)
}

func TestStoreIsInUse(t *testing.T) {
	dir := t.TempDir()
	in, err := readFile(smallFile)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openStore(t.Context(), dir, "", in)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	checkFails(t, exitUnavailable, "messages", "--file", smallFile, "--store", dir)
}

// TestInterrupted stops a replay politely; the next run goes on.
func TestInterrupted(t *testing.T) {
	_, want := plainPass(t, smallFile)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr bytes.Buffer
	steps := 0
	p := &program{stdout: &stdout, stderr: &stderr, after: func(string) error {
		if steps++; steps == 5 {
			cancel()
		}
		return nil
	}}
	if code := p.run(ctx, []string{"--file", smallFile, "--store", dir}); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if line := stderr.String(); !strings.Contains(line, "run again with --store "+dir) || strings.Count(line, "\n") != 1 {
		t.Errorf("standard error has %q", line)
	}
	checkReport(t, runJSON(t, "--file", smallFile, "--store", dir), want)
}
