package main

import (
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// debian makes a minimal Debian in a folder of its own.
func debian(t *testing.T) string {
	t.Helper()
	needed(t, "mmdebstrap", "dpkg-deb", "rpm")
	if runtime.GOOS != "linux" || !slices.Contains(platforms(), here) {
		t.Skipf("the release has no package for %s", here)
	}
	packed, root := filepath.Join(temporary, "debian.tar"), filepath.Join(t.TempDir(), "root")
	if _, err := os.Stat(packed); err != nil {
		output(t, "mmdebstrap", "--quiet", "--variant=essential", "--include=passwd", "bookworm", packed)
	}
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	output(t, "tar", "-xf", packed, "-C", root)
	return root
}

// output runs a command that must succeed, and returns what it prints.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// checkInstalled checks what an installation leaves.
func checkInstalled(t *testing.T, root string, dir func() (string, error)) {
	t.Helper()
	if want, _ := binaryOf(t, dir, here); read(t, filepath.Join(root, "usr/bin/tarry")) != string(want) {
		t.Error("the binary is not that of the archive")
	}
	s, info := unit(t, root), stat(t, filepath.Join(root, "var/lib/tarry"))
	if owner := info.Sys().(*syscall.Stat_t); info.Mode() != os.ModeDir|0o700 || owner.Uid != s.uid || owner.Gid != s.gid || s.uid == 0 {
		t.Errorf("/var/lib/tarry has mode %v and belongs to %d:%d; the service runs as %d:%d", info.Mode(), owner.Uid, owner.Gid, s.uid, s.gid)
	}
	if mode := stat(t, filepath.Join(root, "etc/tarry/env")).Mode(); mode != 0o640 {
		t.Errorf("/etc/tarry/env has mode %v", mode)
	}
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func gone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", path, err)
	}
}

// checkUpgrade installs the older release, pushes a message to its service, and upgrades: the
// message, and changed settings, must still be there.
func checkUpgrade(t *testing.T, root, name string, install func(path string)) {
	t.Helper()
	settings := filepath.Join(root, "etc/tarry/env")
	install(artefact(t, builtBefore, name))
	checkInstalled(t, root, builtBefore)
	changed := "TARRY_HTTP=" + freeAddress(t) + "\n"
	if err := os.WriteFile(settings, []byte(changed), 0o640); err != nil {
		t.Fatal(err)
	}
	url, stop := unit(t, root).start(t)
	push(t, url)
	stop()
	install(artefact(t, built, name))
	checkInstalled(t, root, built)
	if got := read(t, settings); got != changed {
		t.Errorf("the upgrade changed the settings into:\n%s", got)
	}
	url, stop = unit(t, root).start(t)
	call(t, http.MethodGet, url+message, "", http.StatusOK)
	stop()
}

// checkRemoved checks what a removal says, removes and leaves.
func checkRemoved(t *testing.T, root, said string) {
	t.Helper()
	if !strings.Contains(said, "tarry: the messages in /var/lib/tarry are kept\n") {
		t.Errorf("the removal says:\n%s", said)
	}
	gone(t, filepath.Join(root, "usr/bin/tarry"))
	checkStoreKept(t, root)
}

func checkStoreKept(t *testing.T, root string) {
	t.Helper()
	if files, err := os.ReadDir(filepath.Join(root, "var/lib/tarry")); err != nil || len(files) == 0 {
		t.Errorf("the store is gone: %v", err)
	}
}

func TestDebianPackage(t *testing.T) {
	root := debian(t)
	// A systemd that cannot start the service: that must not leave the package half installed.
	if err := os.MkdirAll(filepath.Join(root, "run/systemd/system"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "usr/bin/systemctl"), []byte("#!/bin/sh\n[ \"$1\" != try-restart ]\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	checkUpgrade(t, root, "tarry_VERSION_linux_"+runtime.GOARCH+".deb", func(path string) {
		output(t, "cp", path, filepath.Join(root, "tarry.deb"))
		said := output(t, "chroot", root, "dpkg", "--install", "/tarry.deb")
		if !strings.Contains(said, "tarry: the service did not start again; journalctl -u tarry says why\n") {
			t.Errorf("the installation says:\n%s", said)
		}
	})
	checkRefusesFormat(t, unit(t, root))
	// systemd gives a store to the service's user unless its directory belongs to that already.
	store := filepath.Join(root, "var/lib/tarry")
	if err := os.Chown(store, 61184, 61184); err != nil {
		t.Fatal(err)
	}
	output(t, "chroot", root, "dpkg", "--install", "/tarry.deb")
	if owner := stat(t, store).Sys().(*syscall.Stat_t).Uid; owner != 61184 {
		t.Errorf("the directory of another user's store was given to %d, without its files", owner)
	}
	checkRemoved(t, root, output(t, "chroot", root, "dpkg", "--remove", "tarry"))
	settings := filepath.Join(root, "etc/tarry/env")
	if got := read(t, settings); !strings.HasPrefix(got, "TARRY_HTTP=") {
		t.Errorf("the removal changed the settings into:\n%s", got)
	}
	said := output(t, "chroot", root, "dpkg", "--purge", "tarry")
	if !strings.Contains(said, "tarry: /etc/tarry/env is removed; the messages in /var/lib/tarry and the user tarry are kept\n") {
		t.Errorf("the purge says:\n%s", said)
	}
	gone(t, settings)
	checkStoreKept(t, root)
}

// Debian's rpm does not know what is installed in the root.
func TestRPMPackage(t *testing.T) {
	root := debian(t)
	rpm := func(args ...string) string {
		t.Helper()
		return output(t, "rpm", append([]string{"--root", root, "--force-debian", "--nodeps", "--noplugins"}, args...)...)
	}
	checkUpgrade(t, root, "tarry_VERSION_linux_"+runtime.GOARCH+".rpm", func(path string) { rpm("--upgrade", path) })
	checkRemoved(t, root, rpm("--erase", "tarry"))
}

// checkRefusesFormat serves a store whose manifest is of the next format, which must be refused
// in one line.
func checkRefusesFormat(t *testing.T, s service) {
	t.Helper()
	found := false
	err := filepath.WalkDir(filepath.Join(s.root, "var/lib/tarry"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(b), "tarrymfs") {
			return err
		}
		found = true
		binary.LittleEndian.PutUint32(b[8:], binary.LittleEndian.Uint32(b[8:])+1)
		table := crc32.MakeTable(crc32.Castagnoli)
		binary.LittleEndian.PutUint32(b[12:], crc32.Update(crc32.Update(0, table, b[:12]), table, b[16:]))
		return os.WriteFile(path, b, 0o600)
	})
	if err != nil || !found {
		t.Fatalf("no manifest was found: %v", err)
	}
	out, err := s.command(t.Context()).CombinedOutput()
	if _, refused := err.(*exec.ExitError); !refused || !regexp.MustCompile(`^tarry: [^\n]*written by another release[^\n]*\n$`).Match(out) {
		t.Errorf("a store of the next format: %v\n%s", err, out)
	}
}

// contents are what both packages install, but for the manual pages.
func contents(zsh string) []string {
	return []string{"/etc/tarry/env", "/usr/bin/tarry", "/usr/lib/systemd/system/tarry.service", "/usr/share/bash-completion/completions/tarry",
		"/usr/share/doc/tarry/copyright", "/usr/share/fish/vendor_completions.d/tarry.fish", zsh}
}

// checkContents compares a list of files with the contents of a package and a manual page for
// each of the archive's.
func checkContents(t *testing.T, platform string, got []string, zsh string) {
	t.Helper()
	want := contents(zsh)
	for name := range unpacked(t, built, platform) {
		if page, ok := strings.CutPrefix(name, "man/"); ok {
			want = append(want, "/usr/share/man/man1/"+page+".gz")
		}
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%s: the package has\n%q, and should have\n%q", platform, got, want)
	}
}

func TestPackageContents(t *testing.T) {
	needed(t, "dpkg-deb", "rpm")
	for arch, rpmArch := range map[string]string{"amd64": "x86_64", "arm64": "aarch64"} {
		platform := "linux/" + arch
		if !slices.Contains(platforms(), platform) {
			continue
		}
		deb, rpm := artefact(t, built, "tarry_VERSION_linux_"+arch+".deb"), artefact(t, built, "tarry_VERSION_linux_"+arch+".rpm")
		var files []string
		for line := range strings.Lines(output(t, "dpkg-deb", "--contents", deb)) {
			if f := strings.Fields(line); !strings.HasPrefix(f[0], "d") {
				files = append(files, strings.TrimPrefix(f[5], "."))
			}
			if !strings.Contains(line, " root/root ") {
				t.Errorf("%s: %s", deb, line)
			}
		}
		checkContents(t, platform, files, "/usr/share/zsh/vendor-completions/_tarry")
		checkContents(t, platform, strings.Fields(output(t, "rpm", "-qpl", rpm)), "/usr/share/zsh/site-functions/_tarry")
		bare := strings.Replace(strings.TrimPrefix(version, "v"), "-", "~", 1)
		if got := output(t, "dpkg-deb", "--field", deb, "Version", "Architecture"); got != "Version: "+bare+"\nArchitecture: "+arch+"\n" {
			t.Errorf("%s is of\n%s", deb, got)
		}
		if got := output(t, "rpm", "-qp", "--queryformat", "%{version} %{arch} %{buildhost}", rpm); got != bare+" "+rpmArch+" localhost" {
			t.Errorf("%s is of %s", rpm, got)
		}
		conffiles := output(t, "dpkg-deb", "--info", deb, "conffiles") + output(t, "rpm", "-qpc", rpm)
		if conffiles != "/etc/tarry/env\n/etc/tarry/env\n" {
			t.Errorf("%s: configuration files are\n%s", platform, conffiles)
		}
	}
}
