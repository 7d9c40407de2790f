package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/url"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// openStore opens a store. That a local one cannot be opened is a failure of this
// call, not of a server somewhere. Without cfg nothing is logged: commands tell
// themselves what went wrong.
func openStore(ctx context.Context, store string, cfg *tarry.Config) (*tarry.Client, error) {
	if cfg == nil {
		cfg = &tarry.Config{Logger: slog.New(slog.DiscardHandler)}
	}
	c, err := tarry.Open(ctx, store, cfg)
	if !errors.Is(err, tarry.ErrUnavailable) {
		return c, err
	}
	if _, local := diskDir(store); local {
		return nil, &failedError{line: err.Error(), err: err}
	}
	var e *engine.Error
	if u, bad := url.Parse(store); bad == nil && isServer(u) && errors.As(err, &e) && !errors.As(err, new(*tls.CertificateVerificationError)) {
		with := *e
		with.Hint += "; is it running? tarry serve starts a server"
		return nil, &with
	}
	return nil, err
}
