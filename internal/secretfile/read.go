// Package secretfile reads files that hold secrets or permissions, such as keys, certificates
// and tokens. Other users must not be able to read or write those with secrets (Read). What is
// made from files follows their changes (Value).
package secretfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// MaxSize is the largest size of such a file in bytes.
const MaxSize = 16 << 20

// Read returns the content of a file, unless other users may read or write it.
//
// Only the owner may have access. As an exception, a group may read a file that root owns:
// systemd (with an ACL) and Kubernetes pass secrets to a service in this way, and an
// administrator may do so too. Only the modes of regular files are checked, not those of
// pipes.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat() // of the open file, not of the path, which may change
	if err != nil {
		return nil, err
	}
	if err := Check(path, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err == nil && len(data) > MaxSize {
		err = &fs.PathError{Op: "read", Path: path, Err: errors.New("it is larger than 16 MiB")}
	}
	return data, err
}

// Check returns an error if other users may read or write a file. It says what to do.
func Check(path string, info os.FileInfo) error {
	if !info.Mode().IsRegular() {
		return nil
	}
	mode, allowed := info.Mode().Perm(), fs.FileMode(0o700)
	if ownedByRoot(info) {
		allowed |= 0o040
	}
	if !hasModes || mode&^allowed == 0 {
		return nil
	}
	return fmt.Errorf("others may read or write %s, its mode is %04o (chmod 600 %[1]s)", path, mode)
}
