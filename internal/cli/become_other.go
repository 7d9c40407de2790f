//go:build !unix

package cli

// become fails: there is no such call here.
func become(name string) error {
	if name == "" {
		return nil
	}
	return usagef("start it as that user without -u", "no program can become another user here")
}
