//go:build unix && !linux

package cli

import "syscall"

func dieWithUs(*syscall.SysProcAttr) {}
