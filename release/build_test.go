package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// version is the version of the release under test; older is the one that it upgrades.
var version = cmp.Or(os.Getenv("VERSION"), "v0.0.2")

const older = "v0.0.1"

// platforms returns the platforms of the release.
func platforms() []string {
	return strings.Fields(cmp.Or(os.Getenv("PLATFORMS"), "linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64 freebsd/amd64 freebsd/arm64"))
}

// here is this machine's platform.
const here = runtime.GOOS + "/" + runtime.GOARCH

// build runs the script build, and returns the folder.
func build(dir, version string, platforms ...string) error {
	cmd := exec.Command("./build", dir)
	cmd.Env = append(os.Environ(), "VERSION="+version, "PLATFORMS="+strings.Join(platforms, " "))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("release/build: %w\n%s", err, out)
	}
	return nil
}

// temporary outlives a test; TestMain removes it.
var temporary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "release-check-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	temporary = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// built is the release: that in DIST, or one built now.
var built = sync.OnceValues(func() (string, error) {
	if dist := os.Getenv("DIST"); dist != "" {
		return dist, nil
	}
	dir := filepath.Join(temporary, "dist")
	return dir, build(dir, version, platforms()...)
})

// builtBefore is the older release, for this machine.
var builtBefore = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(temporary, "older")
	return dir, build(dir, older, here)
})

// artefact returns the path of an artefact. VERSION in its name is replaced.
func artefact(t *testing.T, dir func() (string, error), name string) string {
	t.Helper()
	in, err := dir()
	if err != nil {
		t.Fatal(err)
	}
	of := version
	if strings.HasSuffix(in, "older") {
		of = older
	}
	return filepath.Join(in, strings.ReplaceAll(name, "VERSION", strings.TrimPrefix(of, "v")))
}

// expected are the names of all artefacts.
func expected() []string {
	bare := strings.TrimPrefix(version, "v")
	all, linux := []string{"SHA256SUMS"}, false
	for _, p := range platforms() {
		system, arch, _ := strings.Cut(p, "/")
		name, packed := "tarry_"+bare+"_"+system+"_"+arch, ".tar.gz"
		if system == "windows" {
			packed = ".zip"
		}
		all = append(all, name+packed, name+".cdx.json")
		if system == "linux" {
			linux = true
			all = append(all, name+".deb", name+".rpm")
		}
	}
	if linux {
		all = append(all, "tarry_"+bare+"_oci.tar")
	}
	slices.Sort(all)
	return all
}

func TestChecksums(t *testing.T) {
	sums, err := os.ReadFile(artefact(t, built, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"SHA256SUMS"}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		content, err := os.ReadFile(artefact(t, built, name))
		if err != nil || fmt.Sprintf("%x", sha256.Sum256(content)) != sum {
			t.Errorf("%s: another sum: %v", name, err)
		}
		names = append(names, name)
	}
	if slices.Sort(names); !slices.Equal(names, expected()) {
		t.Errorf("the release has\n%s\nand should have\n%s", strings.Join(names, "\n"), strings.Join(expected(), "\n"))
	}
}

// A second build, in another folder and with another umask, gives the same bytes.
func TestSameBytes(t *testing.T) {
	dir := filepath.Join(temporary, "again", "elsewhere")
	first := artefact(t, built, "")
	defer syscall.Umask(syscall.Umask(0o077))
	if err := build(dir, version, platforms()...); err != nil {
		t.Fatal(err)
	}
	for _, name := range expected() {
		a, err := os.ReadFile(filepath.Join(first, name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s is another in the second build", name)
		}
	}
}

// A release is of a commit, and has a version: that of its tag, or a given one.
func TestRefusesWhatIsNoVersion(t *testing.T) {
	src := filepath.Join(t.TempDir(), "src")
	run := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "VERSION=") })
		out, err := cmd.CombinedOutput()
		if _, failed := err.(*exec.ExitError); err != nil && !failed || err != nil && name == "git" {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	run("git", "clone", "-q", "--no-tags", "..", src)
	script, out := filepath.Join(src, "release", "build"), filepath.Join(t.TempDir(), "out")
	if got := run(script, out); !regexp.MustCompile(`^release: "" is no version: .*VERSION=v1\.2\.3\n$`).MatchString(got) {
		t.Errorf("without a tag it says:\n%s", got)
	}
	if got := run("env", "VERSION=1.2", script, out); !regexp.MustCompile(`^release: "1\.2" is no version: .*\n$`).MatchString(got) {
		t.Errorf("with another version it says:\n%s", got)
	}
	run("git", "-C", src, "tag", "v9.9.9")
	if err := os.WriteFile(filepath.Join(src, "LICENSE"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := run(script, out); !regexp.MustCompile(`^release: commit first: .*\n$`).MatchString(got) {
		t.Errorf("with the tag and changes it says:\n%s", got)
	}
}
