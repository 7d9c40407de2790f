package servertest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// rootVariable names a folder that holds a system of its own, such as the unpacked packages
// of a newer release:
//
//	TARRY_TEST_ROOT=/srv/sid go test ./engine/...
//
// Programs are then looked up there, and run in it by chroot, which takes Linux and root.
// /proc has to be mounted in it, and its /tmp is where temporary folders go. A path below
// the folder is the same inside, as a link in it leads from its own path to its top.
const rootVariable = "TARRY_TEST_ROOT"

// Root is the folder that TARRY_TEST_ROOT names; "": the machine's own programs are run.
func Root() string { return os.Getenv(rootVariable) }

func init() {
	root := Root()
	if root == "" {
		return
	}
	inside := filepath.Join(root, root)
	err := os.MkdirAll(filepath.Dir(inside), 0o755)
	if err == nil {
		err = os.Symlink("/", inside)
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = os.Setenv("TMPDIR", filepath.Join(root, "tmp"))
	}
	if err != nil {
		panic(rootVariable + ": " + err.Error())
	}
}

// CommandContext is exec.CommandContext for a program that Installed has found.
func CommandContext(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = os.Environ()
	if root := Root(); root != "" {
		cmd.Env = append(cmd.Env, "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "LANG=C.UTF-8")
		changeRoot(cmd, root)
		cmd.Dir = "/" // the test's own is not in it
	}
	return cmd
}

// lookPath is the path of a program that is in the PATH.
func lookPath(program string) (string, error) {
	root := Root()
	if root == "" {
		return exec.LookPath(program)
	}
	for _, folder := range []string{"usr/sbin", "usr/bin", "sbin", "bin"} {
		path := filepath.Join(root, folder, program)
		if _, err := os.Lstat(path); err == nil { // a link in it is followed in it
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}
