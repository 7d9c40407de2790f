//go:build !unix

package cli

import "os/exec"

// ownGroup does nothing: there are no process groups here, so only the command itself is
// killed.
func ownGroup(*exec.Cmd) {}
