//go:build unix

package secretfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// file is one as a file system tells of it.
type file struct {
	mode fs.FileMode
	uid  uint32
}

func (f file) Name() string       { return "f" }
func (f file) Size() int64        { return 1 }
func (f file) Mode() fs.FileMode  { return f.mode }
func (f file) ModTime() time.Time { return time.Time{} }
func (f file) IsDir() bool        { return f.mode.IsDir() }
func (f file) Sys() any           { return &syscall.Stat_t{Uid: f.uid} }

func TestCheck(t *testing.T) {
	for mode, want := range map[fs.FileMode]struct{ root, other bool }{
		0o600: {true, true}, 0o400: {true, true}, 0o700: {true, true}, 0o000: {true, true},
		0o640: {true, false}, 0o440: {true, false}, // of a credential of systemd, a secret of Kubernetes
		0o660: {false, false}, 0o620: {false, false}, 0o650: {false, false},
		0o644: {false, false}, 0o604: {false, false}, 0o602: {false, false}, 0o601: {false, false}, 0o444: {false, false}, 0o777: {false, false},
		fs.ModeNamedPipe | 0o666: {true, true}, fs.ModeDevice | fs.ModeCharDevice | 0o620: {true, true},
	} {
		for uid, good := range map[uint32]bool{0: want.root, 1000: want.other} {
			err := Check("f", file{mode, uid})
			if (err == nil) != good {
				t.Errorf("%s of %d: %v", mode, uid, err)
			}
			if err != nil && !strings.Contains(err.Error(), "(chmod 600 f)") {
				t.Errorf("%s of %d: %v", mode, uid, err)
			}
		}
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := Read(path); err != nil || string(data) != "x" {
		t.Errorf("%q, %v", data, err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	link := path + ".link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, link} {
		if data, err := Read(p); err == nil || data != nil || !strings.Contains(err.Error(), "its mode is 0644 (chmod 600 "+p) {
			t.Errorf("%q, %v", data, err)
		}
	}
	if err := os.Truncate(path, MaxSize+1); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Error(err)
	}
	if _, err := Read(path + ".none"); !os.IsNotExist(err) {
		t.Error(err)
	}
}
