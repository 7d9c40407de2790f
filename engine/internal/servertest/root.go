package servertest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// rootVariable is the environment variable with the root directory of another system, such as
// the unpacked packages of a newer release:
//
//	TARRY_TEST_ROOT=/srv/sid go test ./engine/...
//
// Programs are then looked up there and run by chroot, which needs Linux and root. /proc must
// be mounted in the directory, and temporary directories are in its /tmp. A link inside it
// leads from the directory's own path to its root, so paths are the same inside and outside.
const rootVariable = "TARRY_TEST_ROOT"

// Root returns the directory in TARRY_TEST_ROOT; "": the machine's own programs run.
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

// CommandContext is exec.CommandContext for a program that Installed found.
func CommandContext(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = os.Environ()
	if root := Root(); root != "" {
		cmd.Env = append(cmd.Env, "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "LANG=C.UTF-8")
		changeRoot(cmd, root)
		cmd.Dir = "/" // the test's directory is not inside the root
	}
	return cmd
}

// lookPath returns the path of a program in PATH.
func lookPath(program string) (string, error) {
	root := Root()
	if root == "" {
		return exec.LookPath(program)
	}
	for _, folder := range []string{"usr/sbin", "usr/bin", "sbin", "bin"} {
		path := filepath.Join(root, folder, program)
		if _, err := os.Lstat(path); err == nil { // Lstat: a link is followed inside the root
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}
