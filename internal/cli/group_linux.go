package cli

import "syscall"

func dieWithUs(of *syscall.SysProcAttr) { of.Pdeathsig = syscall.SIGKILL }
