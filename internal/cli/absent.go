package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/storeurl"
)

// whenMissing says what a command does if its disk store does not exist.
type whenMissing int

const (
	makeIt    whenMissing = iota
	refuseIt              // the name may be wrong
	showEmpty             // for commands that only read: making a store would hide a wrong name
)

// absentDir returns the directory of a disk store that is missing or empty: nobody has made it
// yet.
func absentDir(u *url.URL) (dir string, absent bool) {
	if u.Scheme != "disk" {
		return "", false
	}
	dir = storeurl.New(u).Path()
	names, err := os.ReadDir(dir)
	return dir, errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0
}

// checkPresent returns an error if a disk store does not exist.
func checkPresent(op string, u *url.URL) error {
	if dir, absent := absentDir(u); absent {
		return &engine.Error{Op: op, Err: tarry.ErrNotFound, Hint: "there is no store in " + dir}
	}
	return nil
}

// absent is an empty stand-in for a disk store that does not exist.
type absent struct{ *memengine.Engine }

// Capabilities names the engine that the store would have.
func (a absent) Capabilities() engine.Capabilities {
	c := a.Engine.Capabilities()
	c.Name = "disk"
	return c
}

// openMissing opens a disk store that does not exist. If it returns no client and no error,
// open continues as usual.
func (p *Program) openMissing(op string, u *url.URL, do whenMissing) (*tarry.Client, error) {
	switch do {
	case makeIt:
		return nil, nil
	case refuseIt:
		return nil, checkPresent(op, u)
	}
	dir, is := absentDir(u)
	if !is {
		return nil, nil
	}
	if _, _, err := diskengine.ParseURL(u); err != nil {
		return nil, err
	}
	fmt.Fprintf(p.Stderr, "there is no store in %s yet; it is shown as empty\n", shown(dir))
	return tarry.New(absent{memengine.New(nil)}, &tarry.Config{Logger: slog.New(slog.DiscardHandler)}), nil
}
