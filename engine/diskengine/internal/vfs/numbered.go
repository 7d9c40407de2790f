package vfs

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Numbered is a kind of files that have numbers: the suffix of their names.
type Numbered string

// Name is the path of the file with a number.
func (n Numbered) Name(dir string, number uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%016x%s", number, string(n)))
}

// Parse returns the number of a file from its name, which may have a directory before it. ok
// is false for files of another kind.
func (n Numbered) Parse(name string) (number uint64, ok bool) {
	name = filepath.Base(name)
	number, err := strconv.ParseUint(strings.TrimSuffix(name, string(n)), 16, 64)
	return number, err == nil && name == n.Name("", number)
}
