package main

import (
	"context"
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

// absentDir returns the directory of a disk store that nobody has made yet: it is not there, or empty.
func absentDir(u *url.URL) (dir string, absent bool) {
	if u.Scheme != "disk" {
		return "", false
	}
	dir = storeurl.New(u).Path()
	names, err := os.ReadDir(dir)
	return dir, errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0
}

// checkPresent fails where a disk store is not there: its name may be wrong.
func checkPresent(op string, u *url.URL) error {
	if dir, absent := absentDir(u); absent {
		return &engine.Error{Op: op, Err: tarry.ErrNotFound, Hint: "there is no store in " + dir}
	}
	return nil
}

// absent stands for a disk store that does not exist, for commands that only read: it is empty, and none is
// made by that, which would hide that its name is wrong.
type absent struct{ *memengine.Engine }

// Capabilities names the engine that will be there.
func (a absent) Capabilities() engine.Capabilities {
	c := a.Engine.Capabilities()
	c.Name = "disk"
	return c
}

// openPresent is open for a command about what is in a store already: none is made by that.
func (p *Program) openPresent(ctx context.Context, t *target, op string) (*tarry.Client, error) {
	store, err := t.url(&p.settings)
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(store); err == nil { // else open says what is wrong
		if err := checkPresent(op, u); err != nil {
			return nil, err
		}
	}
	return t.open(ctx, &p.settings)
}

// openToLook is open for a command that changes nothing.
func (p *Program) openToLook(ctx context.Context, t *target) (*tarry.Client, error) {
	store, err := t.url(&p.settings)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(store)
	if err != nil {
		return t.open(ctx, &p.settings) // which says what is wrong
	}
	dir, is := absentDir(u)
	if !is {
		return t.open(ctx, &p.settings)
	}
	if _, _, err := diskengine.ParseURL(u); err != nil {
		return nil, err
	}
	fmt.Fprintf(p.Stderr, "there is no store in %s yet; it is shown as empty\n", shown(dir))
	return tarry.New(absent{memengine.New(nil)}, &tarry.Config{Logger: slog.New(slog.DiscardHandler)}), nil
}
