//go:build linux || darwin || freebsd

package vfs

import "golang.org/x/sys/unix"

func free(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

func isFull(error) bool { return false }
