//go:build !unix

package cli

import "os"

// reloads and drains do nothing: there are no signals for them here.
func reloads() (wishes <-chan os.Signal, stop func()) { return nil, func() {} }
func drains() (wishes <-chan os.Signal, stop func())  { return nil, func() {} }
