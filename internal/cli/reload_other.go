//go:build !unix

package cli

import "os"

// reloads does nothing: there is no signal for it here.
func reloads() (wishes <-chan os.Signal, stop func()) { return nil, func() {} }
