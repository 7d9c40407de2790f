// Package private reads files that hold secrets, or say who may do what: such as nobody
// else may read or write.
package private

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// MaxSize is how many bytes such a file has at most.
const MaxSize = 16 << 20

// Read returns what a file holds, unless others may read or write it.
//
// Nobody but its owner may, but that a group may read what is root's: so systemd, with an
// ACL, and Kubernetes hand a secret to one service, and so does an administrator who
// gives it to a group of its own. Who may read it then, root has decided; a file of any
// other owner is meant for him alone. What is no regular file, as a pipe, has no mode that
// tells anything.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat() // of what is read, whatever the path comes to name
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

// Check returns an error, which says what to do, when others may read or write a file.
func Check(path string, info os.FileInfo) error {
	if !info.Mode().IsRegular() {
		return nil
	}
	mode, allowed := info.Mode().Perm(), fs.FileMode(0o700)
	if ofRoot(info) {
		allowed |= 0o040
	}
	if !hasModes || mode&^allowed == 0 {
		return nil
	}
	return fmt.Errorf("others may read or write %s, its mode is %04o (chmod 600 %[1]s)", path, mode)
}
