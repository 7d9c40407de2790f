//go:build !linux && !darwin && !freebsd && !windows

package vfs

import "errors"

func free(string) (int64, error) { return 0, errors.ErrUnsupported }

func isFull(error) bool { return false }
