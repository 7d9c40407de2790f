package main

import (
	"context"
	"errors"
	"net/url"

	"github.com/tarryhq/tarry"
)

// openStore opens a store. That a local one cannot be opened is a failure of this
// call, not of a server somewhere.
func openStore(ctx context.Context, store string, cfg *tarry.Config) (*tarry.Client, error) {
	c, err := tarry.Open(ctx, store, cfg)
	if _, local := diskDir(store); local && errors.Is(err, tarry.ErrUnavailable) {
		return nil, &failedError{line: err.Error(), err: err}
	}
	return c, err
}

// diskDir returns the directory of a disk store, and whether store is one.
func diskDir(store string) (dir string, ok bool) {
	u, err := url.Parse(store)
	if err != nil || u.Scheme != "disk" {
		return "", false
	}
	if u.Opaque != "" {
		if dir, err := url.PathUnescape(u.Opaque); err == nil {
			return dir, true
		}
		return u.Opaque, true
	}
	return u.Path, true
}
