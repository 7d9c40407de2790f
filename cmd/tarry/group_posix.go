//go:build unix && !linux

package main

import "syscall"

func dieWithUs(*syscall.SysProcAttr) {}
