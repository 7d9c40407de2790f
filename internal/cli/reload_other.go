//go:build !unix

package cli

import "os"

// reloads tells of nothing where there is no signal to wish it by.
func reloads() (wishes <-chan os.Signal, stop func()) { return nil, func() {} }
